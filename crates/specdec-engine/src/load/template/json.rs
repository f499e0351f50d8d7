//! The filter `tojson` as transformers defines it: Python's `json.dumps` without ASCII escapes.
//! Jinja's own escapes `<`, `>`, `&` and `'`, which models have not seen.

use minijinja::{
    Error, ErrorKind, State, Value,
    value::{Kwargs, ValueKind},
};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io;

/// Deepest nesting that is written; JSON texts are limited to 128.
const MAX_DEPTH: usize = 128;

#[expect(clippy::needless_pass_by_value, reason = "the engine calls filters so")]
pub(super) fn filter(state: &State, value: &Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let ascii: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    if ascii == Some(true) || indent > Some(16) {
        return Err(invalid("tojson takes ensure_ascii=false and an indent of at most 16"));
    }
    check_depth(state, value, 0)?;
    let mut out = Vec::new();
    match indent {
        None => value.serialize(&mut Serializer::with_formatter(&mut out, PythonFormatter)),
        Some(width) => {
            let blanks = [b' '; 16];
            let formatter = PrettyFormatter::with_indent(&blanks[..width]);
            value.serialize(&mut Serializer::with_formatter(&mut out, formatter))
        }
    }
    .map_err(|error| invalid(&error.to_string()))?;
    String::from_utf8(out).map_err(|error| invalid(&error.to_string()))
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_owned())
}

/// Serialising recurses; a template can nest lists as deep as it likes.
fn check_depth(state: &State, value: &Value, depth: usize) -> Result<(), Error> {
    if depth == MAX_DEPTH {
        return Err(invalid("tojson: nested too deep"));
    }
    state.consume_fuel(1)?;
    if !matches!(value.kind(), ValueKind::Map | ValueKind::Seq | ValueKind::Iterable) {
        return Ok(());
    }
    for item in value.try_iter()? {
        let inner = if value.kind() == ValueKind::Map { value.get_item(&item)? } else { item };
        check_depth(state, &inner, depth + 1)?;
    }
    Ok(())
}

/// Separators `", "` and `": "`.
struct PythonFormatter;

impl Formatter for PythonFormatter {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
