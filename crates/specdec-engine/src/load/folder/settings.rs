//! `tokenizer_config.json`: of all that stands there, the chat template.

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use std::fmt;

#[derive(Default, Deserialize)]
pub(super) struct Settings {
    #[serde(default)]
    pub(super) chat_template: Template,
}

/// The chat template, or of several by name the one for plain conversations, if there is one.
#[derive(Default)]
pub(super) struct Template(pub(super) Option<String>);

#[derive(Deserialize)]
struct Named {
    name: String,
    template: String,
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TemplateVisitor)
    }
}

struct TemplateVisitor;

impl<'de> Visitor<'de> for TemplateVisitor {
    type Value = Template;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a chat template, or a list of them by name")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Template(None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Template(Some(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let mut default = None;
        while let Some(one) = all.next_element::<Named>()? {
            if one.name == "default" {
                default = Some(one.template);
            }
        }
        Ok(Template(default))
    }
}
