//! Arguments of functions, filters, tests and methods, by place and by name.

use super::{run::Stop, text::Text, value::Value};

#[derive(Default)]
pub(super) struct Args<'t> {
    places: std::collections::VecDeque<Value<'t>>,
    names: Vec<(String, Value<'t>)>,
}

impl<'t> Args<'t> {
    pub(super) fn push(&mut self, value: Value<'t>) {
        self.places.push_back(value);
    }

    pub(super) fn push_named(&mut self, name: String, value: Value<'t>) {
        self.names.push((name, value));
    }

    /// The next argument by place, or else the one of this name.
    pub(super) fn take(&mut self, name: &str) -> Option<Value<'t>> {
        self.places.pop_front().or_else(|| self.named(name))
    }

    /// The argument of this name.
    pub(super) fn named(&mut self, name: &str) -> Option<Value<'t>> {
        let at = self.names.iter().position(|(known, _)| known == name)?;
        Some(self.names.swap_remove(at).1)
    }

    pub(super) fn need(&mut self, name: &str) -> Result<Value<'t>, Stop> {
        self.take(name).ok_or_else(|| Stop::failed(format!("the argument {name} is missing")))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<Text>, Stop> {
        match self.take(name) {
            None | Some(Value::None | Value::Undefined) => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, &other, "a string")),
        }
    }

    pub(super) fn need_text(&mut self, name: &str) -> Result<Text, Stop> {
        self.text(name)?.ok_or_else(|| Stop::failed(format!("the argument {name} is no string")))
    }

    pub(super) fn int(&mut self, name: &str) -> Result<Option<i64>, Stop> {
        match self.take(name) {
            None | Some(Value::None) => Ok(None),
            Some(value) => {
                value.as_int().map(Some).ok_or_else(|| wrong(name, &value, "an integer"))
            }
        }
    }

    pub(super) fn flag(&mut self, name: &str) -> bool {
        self.take(name).is_some_and(|value| value.is_true())
    }

    /// All arguments by name.
    pub(super) fn all_named(&mut self) -> Vec<(String, Value<'t>)> {
        std::mem::take(&mut self.names)
    }

    /// The arguments by place that are left.
    pub(super) fn rest(&mut self) -> Vec<Value<'t>> {
        std::mem::take(&mut self.places).into()
    }

    /// Fails if an argument was not taken.
    pub(super) fn end(&self, callee: &str) -> Result<(), Stop> {
        match self.names.first() {
            Some((name, _)) => Err(Stop::failed(format!("{callee} has no argument {name}"))),
            None if !self.places.is_empty() => {
                Err(Stop::failed(format!("too many arguments of {callee}")))
            }
            None => Ok(()),
        }
    }
}

fn wrong(name: &str, found: &Value<'_>, expected: &str) -> Stop {
    Stop::failed(format!("the argument {name} is {}, expected {expected}", found.kind()))
}
