//! The functions that templates may call, and the tests after `is`.

use super::{
    args::Args,
    run::{Builtin, Run, Stop},
    value::Value,
};
use jiff::ZonedDateTime;

impl<'t> Run<'t> {
    pub(super) fn builtin(
        &mut self,
        builtin: Builtin,
        mut args: Args<'t>,
    ) -> Result<Value<'t>, Stop> {
        let value = match builtin {
            Builtin::Range => self.range(&mut args)?,
            Builtin::Namespace => {
                let mut fields = args.all_named();
                if let Some(Value::Map(map)) = args.take("") {
                    let more = map.entries.iter();
                    fields.extend(more.map(|(name, value)| match name {
                        Value::Text(name) => (name.to_string(), value.clone()),
                        _ => (String::new(), value.clone()),
                    }));
                }
                self.pay_items(1 + fields.len())?;
                self.spaces.push(fields);
                Value::Space(self.spaces.len() - 1)
            }
            Builtin::Dict => {
                let mut entries = match args.take("") {
                    Some(Value::Map(map)) => map.entries.clone(),
                    _ => Vec::new(),
                };
                let named = args.all_named().into_iter();
                entries.extend(named.map(|(name, value)| (Value::own(&name), value)));
                self.pay_items(entries.len())?;
                Value::map(entries)?
            }
            Builtin::RaiseException => {
                let message = args.need("message")?;
                return Err(Stop::Refused(self.printed(&message)?.to_string()));
            }
            Builtin::StrftimeNow => Value::own(&today(&args.need_text("format")?.to_string())?),
        };
        args.end("the function")?;
        Ok(value)
    }

    fn range(&mut self, args: &mut Args<'t>) -> Result<Value<'t>, Stop> {
        let first = args.need("stop")?.as_int();
        let (second, step) = (args.int("stop")?, args.int("step")?.unwrap_or(1));
        let first = first.ok_or_else(|| Stop::failed("range takes integers"))?;
        let (start, stop) = second.map_or((0, first), |stop| (first, stop));
        if step == 0 {
            return Err(Stop::failed("range with step 0"));
        }
        let width = if step > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
        let count = u64::try_from(width).unwrap_or(0).div_ceil(step.unsigned_abs());
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.pay_items(count)?;
        Value::list((0..count as i64).map(|at| Value::Int(start + at * step)).collect())
    }

    pub(super) fn test(
        &mut self,
        name: &str,
        value: &Value<'t>,
        mut args: Args<'t>,
    ) -> Result<bool, Stop> {
        let holds = match name {
            "defined" => !matches!(value, Value::Undefined),
            "undefined" => matches!(value, Value::Undefined),
            "none" => matches!(value, Value::None),
            "true" => matches!(value, Value::Bool(true)),
            "false" => matches!(value, Value::Bool(false)),
            "boolean" => matches!(value, Value::Bool(_)),
            "string" => matches!(value, Value::Text(_)),
            "integer" => matches!(value, Value::Int(_)),
            "float" => matches!(value, Value::Float(_)),
            "number" => value.as_float().is_some(),
            "mapping" => matches!(value, Value::Map(_)),
            "sequence" | "iterable" => {
                matches!(value, Value::List(_) | Value::Map(_) | Value::Text(_))
            }
            "callable" => matches!(value, Value::Macro(_) | Value::Builtin(_)),
            "odd" | "even" => {
                let number = value.as_int();
                let number = number.ok_or_else(|| Stop::failed(format!("{name} of no integer")))?;
                (number % 2 != 0) == (name == "odd")
            }
            "lower" | "upper" => match value {
                Value::Text(text) if name == "lower" => !text.chars().any(char::is_uppercase),
                Value::Text(text) => !text.chars().any(char::is_lowercase),
                _ => false,
            },
            _ => self.relation(name, value, &args.need("other")?)?,
        };
        args.end(name)?;
        Ok(holds)
    }

    fn relation(&mut self, name: &str, value: &Value<'t>, other: &Value<'t>) -> Result<bool, Stop> {
        Ok(match name {
            "eq" | "equalto" | "==" | "sameas" => self.equal(value, other)?,
            "ne" | "!=" => !self.equal(value, other)?,
            "lt" | "lessthan" | "<" => self.order(value, other)?.is_lt(),
            "le" | "<=" => self.order(value, other)?.is_le(),
            "gt" | "greaterthan" | ">" => self.order(value, other)?.is_gt(),
            "ge" | ">=" => self.order(value, other)?.is_ge(),
            "in" => self.contains(other, value)?,
            "contains" | "containing" => self.contains(value, other)?,
            "divisibleby" => match (value.as_int(), other.as_int()) {
                (Some(number), Some(divisor)) if divisor != 0 => {
                    number.checked_rem(divisor).unwrap_or(0) == 0
                }
                _ => return Err(Stop::failed("divisibleby takes integers, not 0")),
            },
            "startingwith" | "endingwith" => match (value, other) {
                (Value::Text(text), Value::Text(part)) => {
                    let (text, part) = (text.to_string(), part.to_string());
                    let starts = name == "startingwith";
                    if starts { text.starts_with(&part) } else { text.ends_with(&part) }
                }
                _ => false,
            },
            _ => return Err(Stop::failed(format!("there is no test {name:?}"))),
        })
    }
}

/// Today's date in local time, in the notation of C's `strftime`.
fn today(format: &str) -> Result<String, Stop> {
    if format.len() > 256 || format.bytes().filter(u8::is_ascii_digit).count() > 8 {
        return Err(Stop::failed("a date format longer than any in use"));
    }
    jiff::fmt::strtime::format(format, &ZonedDateTime::now())
        .map_err(|error| Stop::failed(error.to_string()))
}
