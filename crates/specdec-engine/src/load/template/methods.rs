//! Python's methods of strings, lists and mappings that templates use.

use super::{
    args::Args,
    run::{Run, Stop},
    text::Text,
    value::{Map, Value},
};

impl<'t> Run<'t> {
    pub(super) fn method(
        &mut self,
        value: &Value<'t>,
        name: &str,
        mut args: Args<'t>,
    ) -> Result<Value<'t>, Stop> {
        let answer = match value {
            Value::Text(text) => self.text_method(text, name, &mut args)?,
            Value::Map(map) => self.map_method(map, name, &mut args)?,
            Value::List(_) if matches!(name, "index" | "count") => {
                let item = args.need("value")?;
                let mut places = Vec::new();
                for (at, other) in self.items(value)?.iter().enumerate() {
                    if self.equal(other, &item)? {
                        places.push(at);
                    }
                }
                match (name, places.first()) {
                    ("count", _) => Value::Int(places.len() as i64),
                    (_, Some(&at)) => Value::Int(at as i64),
                    _ => return Err(Stop::failed("not in the list")),
                }
            }
            other => return Err(unknown(other, name)),
        };
        args.end(name)?;
        Ok(answer)
    }

    fn map_method(
        &mut self,
        map: &Map<'t>,
        name: &str,
        args: &mut Args<'t>,
    ) -> Result<Value<'t>, Stop> {
        let entries = map.entries.iter();
        self.pay_items(map.entries.len())?;
        match name {
            "get" => {
                let key = args.need("key")?;
                let otherwise = args.take("default").unwrap_or(Value::None);
                Ok(map.get(&key).cloned().unwrap_or(otherwise))
            }
            "keys" => Value::list(entries.map(|(key, _)| key.clone()).collect()),
            "values" => Value::list(entries.map(|(_, value)| value.clone()).collect()),
            "items" => pairs(map),
            _ => Err(Stop::failed(format!("a mapping has no method {name:?}"))),
        }
    }

    fn text_method(
        &mut self,
        text: &Text,
        name: &str,
        args: &mut Args<'t>,
    ) -> Result<Value<'t>, Stop> {
        self.pay_chars(2 * text.len())?;
        let all = |test: fn(char) -> bool| text.len() > 0 && text.chars().all(test);
        Ok(match name {
            "strip" | "lstrip" | "rstrip" => {
                let (start, end) = (name != "rstrip", name != "lstrip");
                Value::Text(strip(text, args.text("chars")?.as_ref(), start, end))
            }
            "upper" | "lower" | "title" | "capitalize" | "swapcase" => {
                Value::Text(cased(text, name))
            }
            "split" | "rsplit" => self.split(text, name == "rsplit", args)?,
            "splitlines" => {
                let lines = lines(text);
                self.pay_items(lines.len())?;
                Value::list(lines.into_iter().map(Value::Text).collect())?
            }
            "startswith" | "endswith" => {
                let part = args.need("prefix")?;
                Value::Bool(has_end(text, &part, name == "startswith")?)
            }
            "removeprefix" | "removesuffix" => {
                let part = args.need_text("prefix")?;
                let starts = name == "removeprefix";
                let len = text.len();
                Value::Text(match has_end(text, &Value::Text(part.clone()), starts)? {
                    true if starts => text.slice(part.len()..len),
                    true => text.slice(0..len - part.len()),
                    false => text.clone(),
                })
            }
            "replace" => {
                let (old, new) = (args.need_text("old")?, args.need_text("new")?);
                let count = args.int("count")?;
                Value::Text(self.replace(text, &old, &new, count)?)
            }
            "find" | "rfind" | "index" | "count" => {
                let places = text.find_all(&args.need_text("sub")?);
                match name {
                    "count" => Value::Int(places.len() as i64),
                    "find" => Value::Int(places.first().map_or(-1, |&at| at as i64)),
                    "rfind" => Value::Int(places.last().map_or(-1, |&at| at as i64)),
                    _ => match places.first() {
                        Some(&at) => Value::Int(at as i64),
                        None => return Err(Stop::failed("not in the string")),
                    },
                }
            }
            "join" => {
                let items = args.need("items")?;
                Value::Text(self.join(&items, text)?)
            }
            "isdigit" | "isnumeric" | "isdecimal" => Value::Bool(all(char::is_numeric)),
            "isalpha" => Value::Bool(all(char::is_alphabetic)),
            "isalnum" => Value::Bool(all(char::is_alphanumeric)),
            "isspace" => Value::Bool(all(char::is_whitespace)),
            "isupper" => {
                Value::Bool(text.chars().any(char::is_uppercase) && all(|c| !c.is_lowercase()))
            }
            "islower" => {
                Value::Bool(text.chars().any(char::is_lowercase) && all(|c| !c.is_uppercase()))
            }
            _ => return Err(Stop::failed(format!("a string has no method {name:?}"))),
        })
    }

    fn split(&mut self, text: &Text, last: bool, args: &mut Args<'t>) -> Result<Value<'t>, Stop> {
        let separator = args.text("sep")?;
        let most = args.int("maxsplit")?.and_then(|most| usize::try_from(most).ok());
        let pieces = match separator {
            Some(separator) if separator.len() == 0 => {
                return Err(Stop::failed("an empty separator"));
            }
            Some(separator) if last && most.is_some() => {
                let all = text.find_all(&separator).len();
                let kept = all.saturating_sub(most.unwrap_or(all));
                join_first(text, &separator, kept)
            }
            Some(separator) => text.split(&separator, most.unwrap_or(usize::MAX)),
            None if most.is_none() => text.words(),
            None => return Err(Stop::failed("split needs a separator to count")),
        };
        self.pay_items(pieces.len())?;
        Value::list(pieces.into_iter().map(Value::Text).collect())
    }

    pub(super) fn replace(
        &mut self,
        text: &Text,
        old: &Text,
        new: &Text,
        count: Option<i64>,
    ) -> Result<Text, Stop> {
        let most = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
        let places = text.find_all(old);
        let places = &places[..places.len().min(most)];
        self.pay_chars(text.len() + places.len().saturating_mul(new.len()))?;
        let (mut out, mut done) = (Vec::new(), 0);
        for &at in places {
            out.extend_from_slice(&text.raw()[done..at]);
            out.extend_from_slice(new.raw());
            done = at + old.len();
        }
        out.extend_from_slice(&text.raw()[done..]);
        Ok(Text::from(out))
    }

    pub(super) fn join(&mut self, items: &Value<'t>, separator: &Text) -> Result<Text, Stop> {
        let mut parts = Vec::new();
        for (index, item) in self.items(items)?.iter().enumerate() {
            if index > 0 {
                parts.push(separator.clone());
            }
            parts.push(self.printed(item)?);
        }
        self.concat(&parts)
    }
}

/// The entries as tuples.
pub(super) fn pairs<'t>(map: &Map<'t>) -> Result<Value<'t>, Stop> {
    let pair = |(key, value): &(Value<'t>, Value<'t>)| {
        Value::sequence(vec![key.clone(), value.clone()], true)
    };
    Value::list(map.entries.iter().map(pair).collect::<Result<_, _>>()?)
}

fn unknown(value: &Value<'_>, name: &str) -> Stop {
    Stop::failed(format!("{} has no method {name:?}", value.kind()))
}

/// The pieces at the last separators, the first `kept` separators not counting.
fn join_first(text: &Text, separator: &Text, kept: usize) -> Vec<Text> {
    let mut starts = vec![0];
    let mut ends = Vec::new();
    for at in text.find_all(separator).into_iter().skip(kept) {
        ends.push(at);
        starts.push(at + separator.len());
    }
    ends.push(text.len());
    starts.into_iter().zip(ends).map(|(start, end)| text.slice(start..end)).collect()
}

/// Without blanks, or the characters of `chars`, at the chosen ends.
pub(super) fn strip(text: &Text, chars: Option<&Text>, start: bool, end: bool) -> Text {
    match chars {
        None => text.trim(start, end, char::is_whitespace),
        Some(chars) => {
            let chars: std::collections::HashSet<char> = chars.chars().collect();
            text.trim(start, end, |char| chars.contains(&char))
        }
    }
}

/// The lines, without their ends.
pub(super) fn lines(text: &Text) -> Vec<Text> {
    let chars: Vec<char> = text.chars().collect();
    let (mut lines, mut start, mut at) = (Vec::new(), 0, 0);
    while at < chars.len() {
        let end = match (chars[at], chars.get(at + 1)) {
            ('\r', Some('\n')) => 2,
            ('\n' | '\r', _) => 1,
            _ => 0,
        };
        if end > 0 {
            lines.push(text.slice(start..at));
            start = at + end;
        }
        at += end.max(1);
    }
    if start < chars.len() {
        lines.push(text.slice(start..chars.len()));
    }
    lines
}

pub(super) fn cased(text: &Text, how: &str) -> Text {
    let upper = |c: char| c.to_uppercase().collect::<Vec<_>>();
    let lower = |c: char| c.to_lowercase().collect::<Vec<_>>();
    let mut inside = false;
    text.map(|at, c| {
        let begins = !std::mem::replace(&mut inside, c.is_alphabetic());
        match how {
            "upper" => upper(c),
            "title" if begins => upper(c),
            "capitalize" if at == 0 => upper(c),
            "swapcase" if c.is_lowercase() => upper(c),
            _ => lower(c),
        }
    })
}

/// Whether a text, or one of several, stands at an end.
fn has_end(text: &Text, part: &Value<'_>, starts: bool) -> Result<bool, Stop> {
    match part {
        Value::Text(part) => Ok(part.len() <= text.len() && {
            let at = if starts { 0 } else { text.len() - part.len() };
            text.slice(at..at + part.len()) == *part
        }),
        Value::List(parts) => {
            parts.items.iter().try_fold(false, |any, part| Ok(any || has_end(text, part, starts)?))
        }
        other => Err(Stop::failed(format!("{} begins and ends no string", other.kind()))),
    }
}
