//! The engine's thread: takes commands at step borders, steps, and delivers what came of it.

use super::lock;
use super::ticket::Ticket;
use crate::error::EngineError;
use crate::metrics::EngineMetrics;
use crate::request::{Chunk, Event};
use crate::scheduler::{Scheduler, Update};
use crossbeam_channel::{Receiver, Sender};
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// What the engine thread is told.
pub(super) enum Command {
    Submit(Route),
    /// Drop a sequence that was begun.
    Cancel(u64),
    Close,
}

/// The engine's end of a request. Whichever way it goes, the caller's end hears of it: first the
/// channel is closed, then that is announced.
pub(super) struct Route {
    pub(super) id: u64,
    pub(super) events: Sender<Event>,
    pub(super) ticket: LastWord,
}

/// Announces that nothing follows.
pub(super) struct LastWord(pub(super) Arc<Ticket>);

impl Drop for LastWord {
    fn drop(&mut self) {
        self.0.end();
        self.0.announce();
    }
}

/// What callers can learn of an engine without asking its thread.
#[derive(Default)]
pub(super) struct Told {
    /// What the engine died of.
    pub(super) fault: Arc<Mutex<Option<String>>>,
    /// Sums over all steps up to the last border.
    pub(super) metrics: Mutex<EngineMetrics>,
}

/// Runs the loop and turns its end, whatever it was, into an answer for everybody who waits. The
/// fault is written down before the routes are dropped, so a handle that sees its route end knows
/// why.
pub(super) fn supervise(scheduler: Scheduler, inbox: &Receiver<Command>, told: &Told) {
    let mut routes = HashMap::new();
    let run = || serve(scheduler, inbox, &mut routes, &told.metrics);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    let message = match outcome.map_err(|panic| EngineError::from_panic(panic.as_ref())) {
        Ok(Ok(())) => return,
        Err(EngineError::Dead { message }) => message,
        Ok(Err(error)) | Err(error) => error.to_string(),
    };
    *lock(&told.fault) = Some(message);
}

fn serve(
    mut scheduler: Scheduler,
    inbox: &Receiver<Command>,
    routes: &mut HashMap<u64, Route>,
    metrics: &Mutex<EngineMetrics>,
) -> Result<(), EngineError> {
    while let Some(gone) = take_commands(&mut scheduler, inbox, routes) {
        if !gone.is_empty() {
            scheduler.cancel(|id| gone.contains(&id));
            routes.retain(|id, _| !gone.contains(id));
        }
        let updates = scheduler.step()?;
        lock(metrics).add(scheduler.take_metrics());
        for update in updates {
            deliver(update, routes);
        }
    }
    Ok(())
}

/// Takes what the inbox holds by now, waiting only when there is nothing else to do. Which sequences
/// are to be dropped; `None` at the end. What comes meanwhile waits for the next border, so that
/// callers, however many, never hold up a step (and `ticket.rs` counts on it).
fn take_commands(
    scheduler: &mut Scheduler,
    inbox: &Receiver<Command>,
    routes: &mut HashMap<u64, Route>,
) -> Option<HashSet<u64>> {
    let mut gone = HashSet::new();
    let first = if scheduler.is_idle() { Some(inbox.recv().ok()?) } else { None };
    for command in first.into_iter().chain(inbox.try_iter().take(inbox.len())) {
        match command {
            Command::Submit(route) => {
                if let Some(sequence) = route.ticket.0.begin() {
                    routes.insert(route.id, route);
                    scheduler.add(*sequence);
                }
            }
            Command::Cancel(id) => {
                gone.insert(id);
            }
            Command::Close => return None,
        }
    }
    Some(gone)
}

fn deliver(update: Update, routes: &mut HashMap<u64, Route>) {
    let event = match update.end {
        Some(Ok(completion)) => Event::Done(update.chunk, Box::new(completion)),
        Some(Err(error)) => Event::Failed(error),
        None if update.chunk == Chunk::default() => return,
        None => Event::Chunk(update.chunk),
    };
    // A handle that is gone has sent its command; the next border removes the sequence.
    if !matches!(event, Event::Chunk(_)) {
        if let Some(route) = routes.remove(&update.id) {
            // Who hears of an end finds its place free.
            route.ticket.0.end();
            let _ = route.events.send(event);
        }
    } else if let Some(route) = routes.get(&update.id) {
        let _ = route.events.send(event);
        route.ticket.0.announce();
    }
}

#[cfg(test)]
mod tests {
    use super::super::ticket::Place;
    use super::*;
    use crossbeam_channel::bounded;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{scope, yield_now};
    use std::time::{Duration, Instant};

    #[test]
    fn who_hears_of_an_end_finds_the_place_free() {
        let open = Arc::default();
        let place = Place::take(&open, 1).unwrap();
        // It holds no event, so the engine waits for the one who takes it.
        let (events, receiver) = bounded(0);
        let ticket = LastWord(Arc::new(Ticket::begun(place)));
        let mut routes = HashMap::from([(3, Route { id: 3, events, ticket })]);
        let end = Some(Err(EngineError::EmptyPrompt));
        let update = Update { id: 3, chunk: Chunk::default(), end };
        let taken = |open: &AtomicUsize| open.load(Ordering::Relaxed);
        scope(|scope| {
            scope.spawn(|| deliver(update, &mut routes));
            let patience = Instant::now() + Duration::from_secs(10);
            while taken(&open) > 0 && Instant::now() < patience {
                yield_now();
            }
            let before = taken(&open);
            assert!(matches!(receiver.recv(), Ok(Event::Failed(_))));
            assert_eq!(before, 0);
        });
    }
}
