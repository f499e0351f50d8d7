//! Loading: what a file says, what is refused, what becomes of text.

mod config;
mod files;
mod header;
mod hostile;
mod template;
mod tokenizer;
