//! Values as text: as Python prints them, and as JSON.
//!
//! JSON is what `json.dumps` makes without ASCII escapes, which is what transformers gives to
//! templates; Jinja's own escapes `<`, `>`, `&` and `'`, which models have not seen.

use super::{
    number::shown,
    run::{Run, Stop},
    text::Text,
    value::Value,
};

/// Characters that an item of a list or a mapping may take beside its own, indent included.
const AROUND_ITEM: u64 = 64;

impl<'t> Run<'t> {
    /// What `{{ value }}` shows.
    pub(super) fn printed(&mut self, value: &Value<'t>) -> Result<Text, Stop> {
        match value {
            Value::Text(text) => return Ok(text.clone()),
            Value::Undefined => return Ok(Text::own("")),
            _ => {}
        }
        self.pay(value.size().saturating_mul(8))?;
        let mut out = Vec::new();
        repr(value, &mut out)?;
        Ok(Text::from(out))
    }

    /// JSON, on one line or indented by so many blanks a level.
    pub(super) fn json(&mut self, value: &Value<'t>, indent: Option<usize>) -> Result<Text, Stop> {
        self.pay(value.size().saturating_mul(8 + AROUND_ITEM))?;
        let mut out = Vec::new();
        json(value, indent, 0, &mut out)?;
        Ok(Text::from(out))
    }
}

fn own(out: &mut Vec<u32>, text: &str) {
    out.extend(text.chars().map(u32::from));
}

fn repr(value: &Value<'_>, out: &mut Vec<u32>) -> Result<(), Stop> {
    match value {
        Value::Undefined => own(out, "Undefined"),
        Value::None => own(out, "None"),
        Value::Bool(true) => own(out, "True"),
        Value::Bool(false) => own(out, "False"),
        Value::Int(number) => own(out, &number.to_string()),
        Value::Float(number) => own(out, &shown(*number)),
        Value::Text(text) => quoted(text, out),
        Value::List(list) => {
            let (open, close) = if list.is_tuple { ("(", ")") } else { ("[", "]") };
            own(out, open);
            for (index, item) in list.items.iter().enumerate() {
                own(out, if index == 0 { "" } else { ", " });
                repr(item, out)?;
            }
            own(out, if list.is_tuple && list.items.len() == 1 { "," } else { "" });
            own(out, close);
        }
        Value::Map(map) => {
            own(out, "{");
            for (index, (key, value)) in map.entries.iter().enumerate() {
                own(out, if index == 0 { "" } else { ", " });
                repr(key, out)?;
                own(out, ": ");
                repr(value, out)?;
            }
            own(out, "}");
        }
        Value::Space(_) | Value::Macro(_) | Value::Builtin(_) | Value::Loop(_) => {
            return Err(Stop::failed(format!("{} cannot be printed", value.kind())));
        }
    }
    Ok(())
}

/// In single quotes, or in double ones if that saves escapes.
fn quoted(text: &Text, out: &mut Vec<u32>) {
    let double = text.chars().any(|c| c == '\'') && !text.chars().any(|c| c == '"');
    let quote = if double { '"' } else { '\'' };
    out.push(quote.into());
    let escaped = text.escape(|c| match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\\' => "\\\\".to_owned(),
        c if c == quote => format!("\\{c}"),
        c if c < ' ' || c == '\u{7f}' => format!("\\x{:02x}", c as u32),
        c => c.to_string(),
    });
    out.extend_from_slice(escaped.raw());
    out.push(quote.into());
}

fn json(
    value: &Value<'_>,
    indent: Option<usize>,
    level: usize,
    out: &mut Vec<u32>,
) -> Result<(), Stop> {
    match value {
        Value::None => own(out, "null"),
        Value::Bool(value) => own(out, if *value { "true" } else { "false" }),
        Value::Text(text) => json_text(text, out),
        Value::Float(number) if number.is_nan() => own(out, "NaN"),
        Value::Float(number) if number.is_infinite() => {
            own(out, if *number > 0.0 { "Infinity" } else { "-Infinity" });
        }
        Value::List(list) => {
            let items = list.items.iter().map(|item| (None, item));
            json_items(['[', ']'], items, indent, level, out)?;
        }
        Value::Map(map) => {
            let items = map.entries.iter().map(|(key, value)| (Some(key), value));
            json_items(['{', '}'], items, indent, level, out)?;
        }
        Value::Int(_) | Value::Float(_) => repr(value, out)?,
        other => return Err(Stop::failed(format!("tojson cannot write {}", other.kind()))),
    }
    Ok(())
}

fn json_items<'a, 't: 'a>(
    [open, close]: [char; 2],
    items: impl Iterator<Item = (Option<&'a Value<'t>>, &'a Value<'t>)>,
    indent: Option<usize>,
    level: usize,
    out: &mut Vec<u32>,
) -> Result<(), Stop> {
    let line = |out: &mut Vec<u32>, level: usize| {
        if let Some(width) = indent {
            own(out, "\n");
            out.extend(std::iter::repeat_n(u32::from(' '), width * level));
        }
    };
    out.push(open.into());
    let mut empty = true;
    for (key, value) in items {
        own(
            out,
            if empty {
                ""
            } else if indent.is_some() {
                ","
            } else {
                ", "
            },
        );
        empty = false;
        line(out, level + 1);
        if let Some(key) = key {
            json_key(key, out)?;
            own(out, ": ");
        }
        json(value, indent, level + 1, out)?;
    }
    if !empty {
        line(out, level);
    }
    out.push(close.into());
    Ok(())
}

/// Keys are strings; numbers and constants become some.
fn json_key(key: &Value<'_>, out: &mut Vec<u32>) -> Result<(), Stop> {
    if let Value::Text(text) = key {
        json_text(text, out);
        return Ok(());
    }
    own(out, "\"");
    json(key, None, 0, out)?;
    own(out, "\"");
    Ok(())
}

fn json_text(text: &Text, out: &mut Vec<u32>) {
    own(out, "\"");
    let escaped = text.escape(|c| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        c if c < ' ' => format!("\\u{:04x}", c as u32),
        c => c.to_string(),
    });
    out.extend_from_slice(escaped.raw());
    own(out, "\"");
}
