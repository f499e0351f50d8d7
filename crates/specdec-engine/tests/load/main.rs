//! Loading: what a file says, what is refused, what becomes of text.

mod files;
mod template;
mod tokenizer;
