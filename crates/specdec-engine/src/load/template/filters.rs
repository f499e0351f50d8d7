//! The filters of Jinja2 that templates use, with Jinja2's results.

use super::{
    args::Args,
    methods::{cased, lines, pairs, strip},
    run::{Run, Stop},
    text::Text,
    value::Value,
};
use std::cmp::Ordering;

/// A key to sort by, and the item.
type Pair<'t> = (Value<'t>, Value<'t>);

/// Widest indent.
const MAX_INDENT: i64 = 16;

impl<'t> Run<'t> {
    pub(super) fn filter(
        &mut self,
        name: &str,
        value: Value<'t>,
        mut args: Args<'t>,
    ) -> Result<Value<'t>, Stop> {
        let args_ = &mut args;
        let filtered = match name {
            "trim" | "upper" | "lower" | "title" | "capitalize" | "replace" | "indent"
            | "string" | "safe" | "escape" | "e" | "split" | "lines" => {
                self.text_filter(name, &value, args_)?
            }
            "int" | "float" | "abs" | "round" => number_filter(name, &value, args_)?,
            "map" | "select" | "reject" | "selectattr" | "rejectattr" => {
                self.item_filter(name, &value, args_)?
            }
            "default" | "d" => {
                let otherwise = args_.take("default_value").unwrap_or_else(|| Value::own(""));
                let falsy_too = args_.flag("boolean");
                let missing = matches!(value, Value::Undefined) || falsy_too && !value.is_true();
                if missing { otherwise } else { value }
            }
            "tojson" => {
                let indent = args_.int("indent")?;
                if args_.flag("ensure_ascii")
                    || indent.is_some_and(|n| !(0..=MAX_INDENT).contains(&n))
                {
                    return Err(Stop::failed(
                        "tojson takes ensure_ascii=false and an indent of at most 16",
                    ));
                }
                Value::Text(self.json(&value, indent.map(|n| n as usize))?)
            }
            "attr" => {
                let name = args_.need_text("name")?.to_string();
                self.attribute(&value, &name)?
            }
            "bool" => Value::Bool(value.is_true()),
            _ => self.list_filter(name, &value, args_)?,
        };
        args.end(name)?;
        Ok(filtered)
    }

    fn text_filter(
        &mut self,
        name: &str,
        value: &Value<'t>,
        args: &mut Args<'t>,
    ) -> Result<Value<'t>, Stop> {
        let text = self.printed(value)?;
        self.pay_chars(2 * text.len())?;
        Ok(Value::Text(match name {
            "trim" => strip(&text, args.text("chars")?.as_ref(), true, true),
            "upper" | "lower" | "title" | "capitalize" => cased(&text, name),
            "replace" => {
                let (old, new) = (args.need_text("old")?, args.need_text("new")?);
                let count = args.int("count")?;
                self.replace(&text, &old, &new, count)?
            }
            "indent" => self.indent(&text, args)?,
            "escape" | "e" => text.escape(|c| match c {
                '&' => "&amp;".to_owned(),
                '<' => "&lt;".to_owned(),
                '>' => "&gt;".to_owned(),
                '\'' => "&#39;".to_owned(),
                '"' => "&#34;".to_owned(),
                c => c.to_string(),
            }),
            "split" => return self.method(&Value::Text(text), "split", std::mem::take(args)),
            "lines" => {
                let lines = lines(&text);
                self.pay_items(lines.len())?;
                return Value::list(lines.into_iter().map(Value::Text).collect());
            }
            _ => text,
        }))
    }

    fn indent(&mut self, text: &Text, args: &mut Args<'t>) -> Result<Text, Stop> {
        let width = args.int("width")?.unwrap_or(4);
        let (first, blank) = (args.flag("first"), args.flag("blank"));
        if !(0..=MAX_INDENT).contains(&width) {
            return Err(Stop::failed("an indent beyond 16"));
        }
        let pieces = text.split(&Text::own("\n"), usize::MAX);
        self.pay_chars(text.len() + pieces.len() * width as usize)?;
        let mut out = Vec::new();
        for (index, line) in pieces.iter().enumerate() {
            if index > 0 {
                out.push(u32::from('\n'));
            }
            if (index > 0 || first) && (blank || line.len() > 0) {
                out.extend(std::iter::repeat_n(u32::from(' '), width as usize));
            }
            out.extend_from_slice(line.raw());
        }
        Ok(Text::from(out))
    }

    fn item_filter(
        &mut self,
        name: &str,
        value: &Value<'t>,
        args: &mut Args<'t>,
    ) -> Result<Value<'t>, Stop> {
        let items = self.items(value)?;
        let attribute = match name {
            "map" => args.named("attribute"),
            "selectattr" | "rejectattr" => Some(args.need("attribute")?),
            _ => None,
        };
        let otherwise = args.named("default");
        let call = if attribute.is_some() && name == "map" { None } else { args.text("filter")? };
        let rest = args.rest();
        let again = || {
            let mut args = Args::default();
            for value in &rest {
                args.push(value.clone());
            }
            args
        };
        let mut out = Vec::new();
        for item in items {
            let seen = match &attribute {
                Some(Value::Text(path)) => self.path(&item, path)?,
                Some(index) => self.item(&item, index)?,
                None => item.clone(),
            };
            let seen = match (&otherwise, seen) {
                (Some(otherwise), Value::Undefined) => otherwise.clone(),
                (_, seen) => seen,
            };
            if name == "map" {
                out.push(match &call {
                    Some(filter) => self.filter(&filter.to_string(), seen, again())?,
                    None => seen,
                });
                continue;
            }
            let holds = match &call {
                Some(test) => self.test(&test.to_string(), &seen, again())?,
                None => seen.is_true(),
            };
            if holds == name.starts_with("select") {
                out.push(item);
            }
        }
        Value::list(out)
    }

    /// An attribute of an attribute: names with dots between.
    fn path(&mut self, item: &Value<'t>, path: &Text) -> Result<Value<'t>, Stop> {
        path.split(&Text::own("."), usize::MAX)
            .iter()
            .try_fold(item.clone(), |value, name| self.item(&value, &Value::Text(name.clone())))
    }

    fn list_filter(
        &mut self,
        name: &str,
        value: &Value<'t>,
        args: &mut Args<'t>,
    ) -> Result<Value<'t>, Stop> {
        match (name, value) {
            ("length" | "count", Value::Text(text)) => return Ok(Value::Int(text.len() as i64)),
            ("reverse", Value::Text(text)) => {
                let raw: Vec<u32> = text.raw().iter().rev().copied().collect();
                return Ok(Value::Text(Text::from(raw)));
            }
            ("items", Value::Map(map)) => {
                self.pay_items(2 * map.entries.len())?;
                return pairs(map);
            }
            ("dictsort", Value::Map(map)) => {
                self.pay_items(2 * map.entries.len())?;
                let Value::List(list) = pairs(map)? else { return Ok(Value::Undefined) };
                return self.sort(list.items.clone(), args);
            }
            _ => {}
        }
        let mut items = self.items(value)?;
        Ok(match name {
            "length" | "count" => Value::Int(items.len() as i64),
            "first" => items.into_iter().next().unwrap_or(Value::Undefined),
            "last" => items.pop().unwrap_or(Value::Undefined),
            "list" => Value::list(items)?,
            "reverse" => {
                items.reverse();
                Value::list(items)?
            }
            "join" => {
                let separator = args.text("d")?.unwrap_or_else(|| Text::own(""));
                if let Some(attribute) = args.take("attribute") {
                    for item in &mut items {
                        *item = self.item(&item.clone(), &attribute)?;
                    }
                }
                Value::Text(self.join(&Value::list(items)?, &separator)?)
            }
            "sort" => return self.sort(items, args),
            "unique" => self.unique(items)?,
            "sum" => items.iter().try_fold(Value::Int(0), |sum, item| {
                super::number::arithmetic(minijinja::machinery::ast::BinOpKind::Add, &sum, item)
            })?,
            "min" | "max" => self.extreme(items, name == "min")?,
            _ => return Err(Stop::failed(format!("there is no filter {name:?}"))),
        })
    }

    /// A merge of equals in order, each comparison paid for.
    fn sort(&mut self, items: Vec<Value<'t>>, args: &mut Args<'t>) -> Result<Value<'t>, Stop> {
        let reverse = args.flag("reverse");
        let case = args.flag("case_sensitive");
        let attribute = args.named("attribute");
        let mut keyed = Vec::with_capacity(items.len());
        for item in items {
            let key = match &attribute {
                Some(Value::Text(path)) => self.path(&item, path)?,
                Some(index) => self.item(&item, index)?,
                None => item.clone(),
            };
            let key = match &key {
                Value::Text(text) if !case => Value::Text(cased(text, "lower")),
                _ => key,
            };
            keyed.push((key, item));
        }
        let sorted = self.merged(keyed, reverse)?;
        Value::list(sorted.into_iter().map(|(_, item)| item).collect())
    }

    /// Sorts by the first of each pair, equals in their order. The standard library's sort may panic
    /// where an order has no rule for every pair.
    fn merged(&mut self, items: Vec<Pair<'t>>, reverse: bool) -> Result<Vec<Pair<'t>>, Stop> {
        let mut runs: Vec<Vec<Pair<'t>>> = items.into_iter().map(|item| vec![item]).collect();
        while runs.len() > 1 {
            let mut longer = Vec::with_capacity(runs.len().div_ceil(2));
            let mut runs_left = runs.into_iter();
            while let Some(first) = runs_left.next() {
                longer.push(match runs_left.next() {
                    Some(second) => self.merge(first, second, reverse)?,
                    None => first,
                });
            }
            runs = longer;
        }
        Ok(runs.pop().unwrap_or_default())
    }

    fn merge(
        &mut self,
        first: Vec<Pair<'t>>,
        second: Vec<Pair<'t>>,
        reverse: bool,
    ) -> Result<Vec<Pair<'t>>, Stop> {
        self.pay_items(first.len() + second.len())?;
        let mut merged = Vec::with_capacity(first.len() + second.len());
        let (mut first, mut second) = (first.into_iter().peekable(), second.into_iter().peekable());
        while let (Some(a), Some(b)) = (first.peek(), second.peek()) {
            let order = self.order(&a.0, &b.0)?;
            let later = if reverse { order.is_lt() } else { order.is_gt() };
            merged.extend(if later { second.next() } else { first.next() });
        }
        merged.extend(first.chain(second));
        Ok(merged)
    }

    fn unique(&mut self, items: Vec<Value<'t>>) -> Result<Value<'t>, Stop> {
        let mut kept: Vec<Value<'t>> = Vec::new();
        for item in items {
            self.pay(kept.len() as u64)?;
            let mut new = true;
            for other in &kept {
                new &= !self.equal(other, &item)?;
            }
            if new {
                kept.push(item);
            }
        }
        Value::list(kept)
    }

    fn extreme(&mut self, items: Vec<Value<'t>>, least: bool) -> Result<Value<'t>, Stop> {
        let mut best = Value::Undefined;
        for item in items {
            let better = matches!(best, Value::Undefined)
                || self.order(&item, &best)?
                    == if least { Ordering::Less } else { Ordering::Greater };
            if better {
                best = item;
            }
        }
        Ok(best)
    }
}

fn number_filter<'t>(
    name: &str,
    value: &Value<'t>,
    args: &mut Args<'t>,
) -> Result<Value<'t>, Stop> {
    let number = match value {
        Value::Text(text) => {
            let text = text.to_string();
            let text = text.trim();
            text.parse().map(Value::Int).or_else(|_| text.parse().map(Value::Float)).ok()
        }
        _ => Some(value.clone()).filter(|value| value.as_float().is_some()),
    };
    match name {
        "int" | "float" => {
            let otherwise = args.take("default").unwrap_or(Value::Int(0));
            Ok(match (name, number.unwrap_or(otherwise)) {
                ("int", Value::Float(number)) => Value::Int(number as i64),
                ("float", number) => Value::Float(number.as_float().unwrap_or(0.0)),
                (_, number) => number,
            })
        }
        _ => {
            let number = number.filter(|_| !matches!(value, Value::Text(_)));
            let number = number.and_then(|number| number.as_float().map(|float| (number, float)));
            let Some((number, float)) = number else {
                return Err(Stop::failed(format!("{name} of {}", value.kind())));
            };
            match (name, number) {
                ("abs", Value::Int(number)) => Ok(Value::Int(number.saturating_abs())),
                ("abs", _) => Ok(Value::Float(float.abs())),
                _ => {
                    let digits = args.int("precision")?.unwrap_or(0).clamp(-300, 300) as i32;
                    let scale = 10f64.powi(digits);
                    Ok(Value::Float((float * scale).round_ties_even() / scale))
                }
            }
        }
    }
}
