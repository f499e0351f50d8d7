//! Chat templates: messages to the prompt that the model was trained on.
//!
//! ```text
//! messages -> marked messages -> rendered text -> control tokens of the template | text -> ids
//! ```
//!
//! A template is code from a file that nobody has checked, and messages are text from anyone. The
//! template runs with a budget of work, no files, no clock but the date, no other templates. And
//! **text of messages never becomes a control token** (`guard.rs`).

mod environment;
mod error;
mod guard;
mod json;

pub use error::TemplateError;

use super::{LoadError, Tokenizer, gguf::Header};
use guard::Guard;
use minijinja::{Environment, context, value::Serde};
use serde_json::Value;
use std::{borrow::Cow, sync::Arc};

const TEMPLATE_KEY: &str = "tokenizer.chat_template";

/// Deepest nesting of a message or a tool; that of JSON texts is limited to 128.
const MAX_DEPTH: usize = 64;

/// The chat template of a model, with the tokenizer that its prompts are for.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Arc<Environment<'static>>,
    tokenizer: Arc<Tokenizer>,
    guard: Guard,
}

/// What to render beside the messages.
#[derive(Clone, Debug, Default)]
pub struct ChatOptions {
    /// End with the beginning of the assistant's answer.
    pub add_generation_prompt: bool,
    /// Tools the model may call, as JSON schemas; an array, or null for none.
    pub tools: Value,
}

/// A rendered conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatPrompt {
    /// The prompt as text, for reading. Encoding it is not safe: it does not tell the control
    /// tokens of the template from those that a message only mentions.
    pub text: String,
    /// The prompt as ids.
    pub token_ids: Vec<u32>,
}

/// A message with a role and a text, as [`ChatTemplate::render`] takes it.
pub fn message(role: &str, content: &str) -> Value {
    serde_json::json!({ "role": role, "content": content })
}

impl ChatTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`].
    pub fn new(source: &str, tokenizer: Arc<Tokenizer>) -> Result<Self, TemplateError> {
        let guard = Guard::new(tokenizer.control_texts())?;
        Ok(Self { environment: environment::compile(source)?, tokenizer, guard })
    }

    /// The template of the file, if it has one.
    ///
    /// # Errors
    /// [`LoadError::Template`] if it does not compile.
    pub fn from_gguf(
        header: &Header,
        tokenizer: Arc<Tokenizer>,
    ) -> Result<Option<Self>, LoadError> {
        let source = header.find::<&str>(TEMPLATE_KEY)?;
        Ok(source.map(|source| Self::new(source, tokenizer)).transpose()?)
    }

    /// Renders messages: JSON objects with `role` and usually `content`, and whatever else the
    /// template knows (`tool_calls`, ..).
    ///
    /// # Errors
    /// [`TemplateError::Messages`] if they are no such objects; the template's own refusal; more
    /// work or output than any sane template needs.
    pub fn render(
        &self,
        messages: &[Value],
        options: &ChatOptions,
    ) -> Result<ChatPrompt, TemplateError> {
        let values: Vec<&Value> = messages.iter().chain([&options.tools]).collect();
        check(&values)?;
        let marker = guard::marker(&values)
            .ok_or(TemplateError::Messages { index: 0, reason: "uses every noncharacter" })?;
        let marked: Vec<Value> = messages.iter().map(|m| self.mark_message(m, marker)).collect();
        let tools = self.mark(&options.tools, marker);
        let text = environment::render(
            &self.environment,
            context! {
                messages => Serde(&marked),
                tools => Serde(&tools),
                add_generation_prompt => options.add_generation_prompt,
                bos_token => self.special(self.tokenizer.bos_id()),
                eos_token => self.special(self.tokenizer.eos_id()),
            },
        )?;
        Ok(self.encode(&text, marker))
    }

    fn special(&self, id: Option<u32>) -> &str {
        id.and_then(|id| self.tokenizer.token_text(id)).unwrap_or_default()
    }

    /// Control tokens are found while the marks keep those of messages apart; then the marks go.
    fn encode(&self, text: &str, marker: char) -> ChatPrompt {
        let mend = |text: &str| text.replace(marker, "");
        let mut token_ids = Vec::new();
        self.tokenizer.encode_parts(text, &mut token_ids, |text| Cow::Owned(mend(text)));
        let bos = self.tokenizer.bos_id().filter(|_| self.tokenizer.add_bos());
        // Most templates write the token that begins a sequence themselves.
        if bos.is_some_and(|bos| token_ids.first() != Some(&bos)) {
            token_ids.splice(0..0, bos);
        }
        ChatPrompt { text: mend(text), token_ids }
    }

    /// A message with its texts marked; templates compare roles and build tokens from them.
    fn mark_message(&self, message: &Value, marker: char) -> Value {
        let mut marked = self.mark(message, marker);
        marked["role"].clone_from(&message["role"]);
        marked
    }

    /// Marks all texts in a value, keys too: templates print tool arguments as JSON.
    fn mark(&self, value: &Value, marker: char) -> Value {
        let name = |name: &str| self.guard.mark_name(name, marker).into_owned();
        match value {
            Value::String(text) => Value::String(self.guard.mark(text, marker).into_owned()),
            Value::Array(items) => items.iter().map(|item| self.mark(item, marker)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(field, value)| (name(field), self.mark(value, marker)))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// Checks that all values but the last are messages, and that recursing into them is safe.
fn check(values: &[&Value]) -> Result<(), TemplateError> {
    let Some((_, messages)) = values.split_last().filter(|(_, messages)| !messages.is_empty())
    else {
        return Err(TemplateError::Messages { index: 0, reason: "is missing; give at least one" });
    };
    for (index, value) in values.iter().enumerate() {
        if !is_shallow(value, MAX_DEPTH) {
            return Err(TemplateError::Messages { index, reason: "is nested more than 64 deep" });
        }
    }
    for (index, message) in messages.iter().enumerate() {
        let refused = |reason| TemplateError::Messages { index, reason };
        let role = message.get("role").and_then(Value::as_str);
        let role = role.ok_or_else(|| refused("is no object with a role"))?;
        // Templates build control tokens from roles, so a role is a word, not a text.
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if role.is_empty() || role.len() > 64 || !role.chars().all(is_word) {
            return Err(refused("has a role that is no word of letters, digits, `_` and `-`"));
        }
    }
    Ok(())
}

fn is_shallow(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| is_shallow(item, depth - 1)),
        Value::Object(fields) => {
            depth > 0 && fields.values().all(|value| is_shallow(value, depth - 1))
        }
        _ => true,
    }
}
