//! Why a conversation was not rendered.

/// Why a template or its messages were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template does not compile.
    #[error("the chat template does not compile, line {line}: {message}; give another one")]
    Syntax {
        /// Line of the template, from 1.
        line: usize,
        /// What the compiler says.
        message: String,
    },
    /// The template is longer than any that people write.
    #[error("the chat template has {bytes} bytes, expected at most {limit}; give a shorter one")]
    Source {
        /// Bytes found.
        bytes: usize,
        /// Most bytes.
        limit: usize,
    },
    /// The control tokens of the vocabulary cannot be searched for.
    #[error("the vocabulary has control tokens beyond all measure: {message}")]
    Vocabulary {
        /// What the builder of the automaton says.
        message: String,
    },
    /// A message is not what a message must be.
    #[error("message {index} {reason}")]
    Messages {
        /// Place in the conversation, from 0.
        index: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The template itself raised an exception.
    #[error("the chat template refuses these messages: {message}")]
    Refused {
        /// The template's own words.
        message: String,
    },
    /// The template failed while it ran.
    #[error("the chat template failed in line {line}: {message}")]
    Failed {
        /// Line of the template, from 1; 0 if unknown.
        line: usize,
        /// What went wrong.
        message: String,
    },
    /// The template ran longer or made more data than rendering a conversation takes.
    #[error("the chat template exceeds its budget of work; shorten the messages or give another")]
    TooMuchWork,
    /// The messages, or the prompt made of them, are longer than any that the model takes.
    #[error("the prompt exceeds {limit} bytes; shorten the messages")]
    TooLong {
        /// Most bytes.
        limit: usize,
    },
}
