//! The Jinja environment: what transformers gives to templates, and nothing else.
//!
//! The engine meters work and data by fuel, with gaps that are closed here: joining strings and
//! formatting with a width are paid for too late, and printing lists recurses. Two gaps are left
//! with a clock and a stack around them: lists made by `+` and `*` are lazy and cost nothing until
//! they are walked, so a rendering that takes longer than [`PATIENCE`] is given up (its thread goes
//! on, for the engine cannot stop it); and a namespace joined by `~` with itself inside overflows
//! any stack.

use super::{error::TemplateError, json};
use crossbeam_channel::{RecvTimeoutError, bounded};
use jiff::ZonedDateTime;
use minijinja::{
    Environment, Error, ErrorKind, Output, State, Value, escape_formatter,
    syntax::SyntaxConfig,
    value::{Kwargs, ValueKind},
};
use minijinja_contrib::pycompat::unknown_method_callback;
use std::{fmt, io, sync::Arc, thread, time::Duration};

/// Work of one rendering: one unit an instruction or 64 bytes of data, so at most 64 MiB.
const FUEL: u64 = 1_000_000;

/// Longest prompt in bytes: sixteen million tokens or so.
const MAX_OUTPUT: usize = 64 << 20;

/// Deepest nesting of macros and loops.
const MAX_RECURSION: usize = 100;

/// Stack of a rendering. Fuel pays for lists nested 250,000 deep, and printing, comparing or
/// dropping them recurses with up to 1 kB a level. The system commits what is used.
const STACK: usize = 512 << 20;

/// Longest template in bytes; real ones have up to 20,000. A chain of operators costs up to 0.5 kB
/// of stack a byte while it is compiled, so this many fit into [`STACK`].
const MAX_SOURCE: usize = 128 << 10;

/// Deepest list or mapping that is printed.
const MAX_PRINTED_DEPTH: usize = 100;

/// Longest rendering: a thousand times what a long conversation takes.
const PATIENCE: Duration = Duration::from_secs(5);

const NAME: &str = "chat";

/// What `raise_exception` carries through the engine.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

/// Compiles a template in an environment of its own.
pub(super) fn compile(source: &str) -> Result<Arc<Environment<'static>>, TemplateError> {
    if source.len() > MAX_SOURCE {
        return Err(TemplateError::Source { bytes: source.len(), limit: MAX_SOURCE });
    }
    let source = source.to_owned();
    on_large_stack(move || compile_here(source))?.map(Arc::new)
}

fn compile_here(source: String) -> Result<Environment<'static>, TemplateError> {
    let mut environment = Environment::new();
    // As transformers sets them; templates are written for it.
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(|error| syntax_error(&error))?);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(MAX_RECURSION);
    environment.set_unknown_method_callback(method);
    environment.set_formatter(print);
    environment.add_filter("tojson", json::filter);
    environment.add_filter("join", join_filter);
    for unmetered in ["format", "pprint"] {
        environment.remove_filter(unmetered);
    }
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_template_owned(NAME, source).map_err(|error| syntax_error(&error))?;
    Ok(environment)
}

/// Renders on a thread of its own, for its stack.
pub(super) fn render(
    environment: &Arc<Environment<'static>>,
    context: Value,
) -> Result<String, TemplateError> {
    let environment = Arc::clone(environment);
    on_large_stack(move || render_here(&environment, context))?
}

/// Runs `work` with [`STACK`] bytes of stack, for at most [`PATIENCE`].
fn on_large_stack<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, TemplateError> {
    let failed = |message: String| TemplateError::Failed { line: 0, message };
    let (sender, result) = bounded(1);
    thread::Builder::new()
        .name("chat-template".to_owned())
        .stack_size(STACK)
        // Nobody listens any more when the patience has ended.
        .spawn(move || drop(sender.send(work())))
        .map_err(|error| failed(format!("cannot start a thread: {error}")))?;
    result.recv_timeout(PATIENCE).map_err(|error| match error {
        RecvTimeoutError::Timeout => TemplateError::TooMuchWork,
        RecvTimeoutError::Disconnected => failed("the template engine panicked".to_owned()),
    })
}

/// Prints what has an end: a list or a mapping that contains itself has none, and would overflow
/// any stack.
fn print(output: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    measure(state, value, MAX_PRINTED_DEPTH)?;
    escape_formatter(output, state, value)
}

/// Pays for every item of `value`, and refuses what is nested deeper than `left`.
fn measure(state: &State, value: &Value, left: usize) -> Result<(), Error> {
    let kind = value.kind();
    let nested = matches!(kind, ValueKind::Seq | ValueKind::Map | ValueKind::Iterable);
    if !nested {
        return Ok(());
    }
    if left == 0 {
        let message = format!("a {kind} nested this deep cannot be printed");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    for item in value.try_iter()? {
        state.consume_fuel(1)?;
        if kind == ValueKind::Map {
            measure(state, &value.get_item(&item)?, left - 1)?;
        } else {
            measure(state, &item, left - 1)?;
        }
    }
    Ok(())
}

fn render_here(environment: &Environment, context: Value) -> Result<String, TemplateError> {
    let mut output = Capped(Vec::new());
    let rendered = environment
        .get_template(NAME)
        .and_then(|template| template.render_captured_to(context, &mut output).map(drop));
    rendered.map_err(|error| render_error(&error))?;
    Ok(String::from_utf8_lossy(&output.0).into_owned())
}

/// Python's methods of strings, lists and dictionaries.
fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    match (name, value.as_str(), args) {
        ("join", Some(separator), [items]) => join(state, items, separator).map(Value::from),
        ("format", ..) => Err(ErrorKind::UnknownMethod.into()),
        _ => unknown_method_callback(state, value, name, args),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the engine calls filters so")]
fn join_filter(
    state: &State,
    items: &Value,
    separator: Option<&str>,
    options: Kwargs,
) -> Result<String, Error> {
    let attribute: Option<&str> = options.get("attribute")?;
    options.assert_all_used()?;
    let items = match attribute {
        None => items.clone(),
        Some(name) => {
            items.try_iter()?.map(|item| item.get_attr(name)).collect::<Result<_, _>>()?
        }
    };
    join(state, &items, separator.unwrap_or_default())
}

/// Joins what has a short text; pays for each piece before it is there.
fn join(state: &State, items: &Value, separator: &str) -> Result<String, Error> {
    let mut joined = String::new();
    for (index, item) in items.try_iter()?.enumerate() {
        let text = match item.kind() {
            ValueKind::String => item.to_str().unwrap_or_default(),
            ValueKind::Number | ValueKind::Bool | ValueKind::None => item.to_string().into(),
            kind => {
                let message = format!("join takes strings, not {kind}");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        };
        state.consume_fuel(1 + (separator.len() + text.len()) as u64 / 64)?;
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&text);
    }
    Ok(joined)
}

fn raise_exception(message: &str) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, "refused").with_source(Raised(message.to_owned())))
}

/// Today's date in local time, in the notation of C's `strftime`.
fn strftime_now(format: &str) -> Result<String, Error> {
    jiff::fmt::strtime::format(format, &ZonedDateTime::now())
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
}

/// Output that refuses to grow beyond [`MAX_OUTPUT`].
struct Capped(Vec<u8>);

impl io::Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn words(error: &Error) -> String {
    error
        .detail()
        .map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()))
}

fn syntax_error(error: &Error) -> TemplateError {
    TemplateError::Syntax { line: error.line().unwrap_or(0), message: words(error) }
}

fn render_error(error: &Error) -> TemplateError {
    match error.kind() {
        ErrorKind::OutOfFuel => return TemplateError::TooMuchWork,
        ErrorKind::WriteFailure => return TemplateError::TooLong { limit: MAX_OUTPUT },
        _ => {}
    }
    let first: &(dyn std::error::Error + 'static) = error;
    let chain = std::iter::successors(Some(first), |error| error.source());
    for cause in chain {
        if let Some(Raised(message)) = cause.downcast_ref() {
            return TemplateError::Refused { message: message.clone() };
        }
    }
    TemplateError::Failed { line: error.line().unwrap_or(0), message: words(error) }
}
