//! Loading: what a file says, what is refused, what becomes of text.

mod child;
mod config;
mod files;
mod fuzz_targets;
mod header;
mod hostile;
mod hostile_files;
mod hostile_templates;
mod template;
mod tokenizer;
