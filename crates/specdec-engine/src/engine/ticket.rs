//! What a request holds while it is open: its place among the open requests and, until the engine
//! begins it, its sequence.
//!
//! Both are given back at once when the request ends or is cancelled, although the engine drops a
//! sequence that it has begun only at the next step border. The number of places bounds memory all
//! the same. What the engine begins at a border holds a place then, and what is cancelled leaves the
//! engine at the next border, so the sequences that linger belong to at most as many requests as
//! there are places; a request that is cancelled before the engine began it leaves none behind. So
//! there are never sequences of more than twice as many requests as there are places.

use super::lock;
use super::ready::Notifier;
use crate::error::EngineError;
use crate::sequence::Sequence;
use std::mem::take;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A place among the open requests, held until it is dropped. The answers to one prompt share one.
pub(super) struct Place(Arc<AtomicUsize>);

impl Place {
    /// A place, unless `limit` are taken.
    pub(super) fn take(open: &Arc<AtomicUsize>, limit: usize) -> Result<Self, EngineError> {
        let more = |open: usize| (open < limit).then_some(open + 1);
        match open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Self(Arc::clone(open))),
            Err(open) => Err(EngineError::QueueFull { open, limit }),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the two ends of a request share: the caller's handle and the engine's route.
pub(super) struct Ticket {
    cancelled: AtomicBool,
    held: Mutex<Held>,
    notifier: Option<Notifier>,
}

#[derive(Default)]
struct Held {
    place: Option<Arc<Place>>,
    sequence: Option<Box<Sequence>>,
}

impl Ticket {
    pub(super) fn new(place: Arc<Place>, sequence: Sequence, notifier: Option<Notifier>) -> Self {
        let held = Held { place: Some(place), sequence: Some(Box::new(sequence)) };
        Self { cancelled: AtomicBool::new(false), held: Mutex::new(held), notifier }
    }

    /// That of a request that the engine has begun.
    #[cfg(test)]
    pub(super) fn begun(place: Place) -> Self {
        let held = Held { place: Some(Arc::new(place)), sequence: None };
        Self { cancelled: AtomicBool::new(false), held: Mutex::new(held), notifier: None }
    }

    /// The sequence, for the engine that begins it; none if the request was cancelled meanwhile.
    pub(super) fn begin(&self) -> Option<Box<Sequence>> {
        lock(&self.held).sequence.take()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Gives back what is held and says that nobody wants the answer. Whether the engine has begun
    /// it, and must hear of it.
    pub(super) fn cancel(&self) -> bool {
        self.cancelled.store(true, Ordering::Relaxed);
        let held = self.leave();
        let (open, begun) = (held.place.is_some(), held.sequence.is_none());
        drop(held);
        if open {
            self.announce();
        }
        open && begun
    }

    /// Gives back what is held; nothing the second time.
    fn leave(&self) -> Held {
        take(&mut *lock(&self.held))
    }

    /// Gives back what is held, at the end of an answer.
    pub(super) fn end(&self) {
        drop(self.leave());
    }

    /// Tells a caller who waits for many requests at once to look at this one.
    pub(super) fn announce(&self) {
        if let Some(notifier) = &self.notifier {
            notifier.announce();
        }
    }
}
