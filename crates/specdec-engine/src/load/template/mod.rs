//! Chat templates: messages to the prompt that the model was trained on.
//!
//! ```text
//! messages -> foreign text -> rendered text -> control tokens of the template | text -> ids
//! ```
//!
//! A template is code from a file that nobody has checked, and messages are text from anyone. The
//! parser is minijinja's; what it has parsed runs here, with a budget of work, no files, no clock
//! but the date, no other templates (`run.rs`). And **text of messages never becomes a control
//! token**: every character knows whether a message brought it (`text.rs`), and a control token is
//! made of the template's own characters, or it is text.

mod args;
mod error;
mod expr;
mod filters;
mod functions;
mod methods;
mod number;
mod print;
mod run;
mod text;
mod value;

pub use error::TemplateError;

use super::{LoadError, Specials, Tokenizer, gguf::Header};
use minijinja::{machinery, syntax::SyntaxConfig};
use run::Run;
use serde_json::Value;
use std::{sync::Arc, thread};
use text::Origin;

const TEMPLATE_KEY: &str = "tokenizer.chat_template";

/// Longest template in bytes; real ones have up to 20,000. A chain of operators costs up to 0.5 kB
/// of stack a byte while it is parsed and dropped, so this many fit into [`STACK`].
const MAX_SOURCE: usize = 64 << 10;

/// Stack of a rendering. The system commits what is used.
const STACK: usize = 64 << 20;

/// Roles of the chat formats in use. Templates build control tokens from roles, so these are the
/// template's own words; any other role is text of its message.
const ROLES: [&str; 9] = [
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
    "model",
    "ipython",
    "environment",
];

/// Deepest nesting of a message or a tool; that of JSON texts is limited to 128.
const MAX_DEPTH: usize = 64;

/// The chat template of a model, with the tokenizer that its prompts are for.
#[derive(Debug)]
pub struct ChatTemplate {
    source: String,
    tokenizer: Arc<Tokenizer>,
}

/// What to render beside the messages.
#[derive(Clone, Debug)]
pub struct ChatOptions {
    /// End with the beginning of the assistant's answer.
    pub add_generation_prompt: bool,
    /// Tools the model may call, as JSON schemas; an array, or null for none.
    pub tools: Value,
    /// Most bytes of the messages and of the prompt.
    pub max_bytes: usize,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self { add_generation_prompt: false, tools: Value::Null, max_bytes: run::MAX_OUTPUT }
    }
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
    /// Parses a template.
    ///
    /// # Errors
    /// [`TemplateError::Syntax`], [`TemplateError::Source`].
    pub fn new(source: &str, tokenizer: Arc<Tokenizer>) -> Result<Self, TemplateError> {
        if source.len() > MAX_SOURCE {
            return Err(TemplateError::Source { bytes: source.len(), limit: MAX_SOURCE });
        }
        on_large_stack(|| parse(source).map(drop))??;
        Ok(Self { source: source.to_owned(), tokenizer })
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
        let too_long = |bytes: usize| bytes > options.max_bytes;
        let refused = || TemplateError::TooLong { limit: options.max_bytes };
        if too_long(values.iter().copied().map(count_bytes).sum()) {
            return Err(refused());
        }
        let runs = on_large_stack(|| self.run(messages, options))??;
        if too_long(runs.iter().map(|(_, text)| text.len()).sum()) {
            return Err(refused());
        }
        Ok(self.encode(&runs))
    }

    fn run(&self, messages: &[Value], options: &ChatOptions) -> Result<Rendered, TemplateError> {
        use value::Value as Inner;
        let template = parse(&self.source)?;
        let failed = |_| TemplateError::Messages { index: 0, reason: "is nested too deep" };
        let given: Vec<_> =
            messages.iter().map(of_message).collect::<Result<_, _>>().map_err(failed)?;
        let bytes = messages.iter().chain([&options.tools]).map(count_bytes).sum();
        let names = vec![
            ("messages", Inner::list(given).map_err(failed)?),
            ("tools", Inner::foreign(&options.tools).map_err(failed)?),
            ("add_generation_prompt", Inner::Bool(options.add_generation_prompt)),
            ("bos_token", Inner::own(self.special(self.tokenizer.bos_id()))),
            ("eos_token", Inner::own(self.special(self.tokenizer.eos_id()))),
        ];
        let text = Run::render(&template, names, bytes)?;
        Ok(text.runs().collect())
    }

    fn special(&self, id: Option<u32>) -> &str {
        id.and_then(|id| self.tokenizer.token_text(id)).unwrap_or_default()
    }

    fn encode(&self, runs: &Rendered) -> ChatPrompt {
        let specials = |origin: &Origin| match origin {
            Origin::Template => Specials::Parse,
            Origin::Message => Specials::AsText,
        };
        let pieces = runs.iter().map(|(origin, text)| (text.as_str(), specials(origin)));
        let mut token_ids = self.tokenizer.encode_runs(pieces);
        let bos = self.tokenizer.bos_id().filter(|_| self.tokenizer.add_bos());
        // Most templates write the token that begins a sequence themselves.
        if bos.is_some_and(|bos| token_ids.first() != Some(&bos)) {
            token_ids.splice(0..0, bos);
        }
        ChatPrompt { text: runs.iter().map(|(_, text)| text.as_str()).collect(), token_ids }
    }
}

/// A rendered prompt in runs of one origin.
type Rendered = Vec<(Origin, String)>;

fn parse(source: &str) -> Result<machinery::ast::Stmt<'_>, TemplateError> {
    let refused = |error: minijinja::Error| {
        let kind = error.kind();
        let message = error.detail().map_or_else(|| kind.to_string(), |d| format!("{kind}: {d}"));
        TemplateError::Syntax { line: error.line().unwrap_or(0), message }
    };
    // As transformers sets it up; templates are written for it.
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    machinery::parse(source, "chat", syntax.map_err(refused)?).map_err(refused)
}

/// Runs `work` with [`STACK`] bytes of stack; it ends by itself.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, TemplateError> {
    let failed = |message: String| TemplateError::Failed { line: 0, message };
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("chat-template".to_owned()).stack_size(STACK);
        let thread = thread
            .spawn_scoped(scope, work)
            .map_err(|error| failed(format!("cannot start a thread: {error}")))?;
        thread.join().map_err(|_| failed("the template engine panicked".to_owned()))
    })
}

/// A message whose texts are foreign, but for a role that templates know.
fn of_message<'t>(message: &Value) -> Result<value::Value<'t>, run::Stop> {
    use value::Value as Inner;
    let role = message["role"].as_str().filter(|role| ROLES.contains(role));
    match (Inner::foreign(message)?, role) {
        (Inner::Map(map), Some(role)) => {
            let role = (Inner::own("role"), Inner::own(role));
            Inner::map(map.entries.iter().cloned().chain([role]))
        }
        (other, _) => Ok(other),
    }
}

/// Bytes of all texts in a value.
fn count_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(count_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, v)| name.len() + count_bytes(v)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
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
