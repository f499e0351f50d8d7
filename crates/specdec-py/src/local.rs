//! What belongs to one process: threads, locks and channels do not survive a fork.

use std::mem::forget;
use std::ops::Deref;
use std::process;

/// A value that is leaked when it is dropped in a child made by fork: its locks may be held, and its
/// channels half-written, by threads that the child does not have.
pub(crate) struct Local<T> {
    /// Always there until the drop.
    value: Option<T>,
    process: u32,
}

impl<T> Local<T> {
    /// `value`, at home in this process.
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: process::id() }
    }

    /// Whether this is the process where the value can be used.
    pub(crate) fn is_home(&self) -> bool {
        self.process == process::id()
    }

    /// The value, for a drop that is not to happen here; nothing in a child.
    pub(crate) fn take(&mut self) -> Option<T> {
        let value = self.value.take();
        if self.is_home() {
            return value;
        }
        forget(value);
        None
    }
}

impl<T> Deref for Local<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("taken by a drop alone")
    }
}

impl<T> Drop for Local<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}
