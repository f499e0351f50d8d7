//! The caller's end of a request.

use super::thread::Command;
use super::ticket::Ticket;
use super::{check_process, why_gone};
use crate::error::EngineError;
use crate::request::Event;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request under way. Dropping it cancels the request.
pub struct RequestHandle {
    pub(super) id: u64,
    pub(super) events: Receiver<Event>,
    pub(super) ticket: Arc<Ticket>,
    pub(super) commands: Sender<Command>,
    pub(super) fault: Arc<Mutex<Option<String>>>,
    pub(super) process: u32,
}

impl RequestHandle {
    /// Number of the request, unique in its engine.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The next event, or `None` when none came within `timeout`. After [`Event::Done`] or
    /// [`Event::Failed`] nothing follows and the answer is [`EngineError::Closed`].
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] after [`RequestHandle::cancel`]; [`EngineError::Closed`],
    /// [`EngineError::Dead`], [`EngineError::Forked`].
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Option<Event>, EngineError> {
        self.check()?;
        match self.events.recv_timeout(timeout) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.why_gone()),
        }
    }

    /// The next event if it is there. A wait of no time at all is no substitute: it yields the
    /// processor some times first.
    ///
    /// # Errors
    /// As [`RequestHandle::recv_timeout`].
    pub fn try_recv(&self) -> Result<Option<Event>, EngineError> {
        self.check()?;
        match self.events.try_recv() {
            Ok(event) => Ok(Some(event)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(self.why_gone()),
        }
    }

    fn check(&self) -> Result<(), EngineError> {
        check_process(self.process)?;
        if self.ticket.is_cancelled() { Err(EngineError::Cancelled) } else { Ok(()) }
    }

    fn why_gone(&self) -> EngineError {
        if self.ticket.is_cancelled() { EngineError::Cancelled } else { why_gone(&self.fault) }
    }

    /// Gives the request's place to others, at once, and asks the engine to drop its sequence at
    /// the next step border. Nothing in a child made by fork, which has no engine to ask.
    pub fn cancel(&self) {
        if check_process(self.process).is_ok() && self.ticket.cancel() {
            // An engine that is gone has dropped it already.
            let _ = self.commands.send(Command::Cancel(self.id));
        }
    }
}

impl Drop for RequestHandle {
    fn drop(&mut self) {
        self.cancel();
    }
}
