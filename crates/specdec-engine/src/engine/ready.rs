//! News of many requests at one place, for a caller who has one thread for all of them and not one
//! for each.

use super::lock;
use std::collections::BTreeSet;
use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Where requests announce, each by its tag, that there is something to receive.
#[derive(Default)]
pub struct ReadyQueue(Arc<News>);

/// Announces one request: after each of its events, and once more when none can follow.
#[derive(Clone)]
pub struct Notifier {
    tag: u64,
    news: Arc<News>,
}

/// A set, so that it is never longer than there are requests, however slow its reader. No channel:
/// those yield the processor some times before they sleep, which takes a turn each on a busy machine.
#[derive(Default)]
struct News {
    told: Mutex<Told>,
    woken: Condvar,
}

#[derive(Default)]
struct Told {
    tags: BTreeSet<u64>,
    closed: bool,
}

impl ReadyQueue {
    /// What announces the requests called `tag`.
    pub fn notifier(&self, tag: u64) -> Notifier {
        Notifier { tag, news: Arc::clone(&self.0) }
    }

    /// Waits for an announcement and takes all that are there: the tags, ascending, each once. An
    /// event is queued before it is announced, so whoever looks afterwards finds it. Empty after
    /// [`ReadyQueue::close`], when all that was announced has been taken.
    pub fn wait(&self) -> Vec<u64> {
        let told = lock(&self.0.told);
        let nothing = |told: &mut Told| told.tags.is_empty() && !told.closed;
        let woken = self.0.woken.wait_while(told, nothing);
        let mut told = woken.unwrap_or_else(PoisonError::into_inner);
        take(&mut told.tags).into_iter().collect()
    }

    /// Ends the waiting.
    pub fn close(&self) {
        lock(&self.0.told).closed = true;
        self.0.woken.notify_all();
    }
}

impl Notifier {
    pub(super) fn announce(&self) {
        lock(&self.news.told).tags.insert(self.tag);
        self.news.woken.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_announced_is_taken_once_and_before_the_end() {
        let queue = ReadyQueue::default();
        for tag in [7, 3, 7] {
            queue.notifier(tag).announce();
        }
        assert_eq!(queue.wait(), [3, 7]);
        queue.notifier(1).announce();
        queue.close();
        assert_eq!(queue.wait(), [1]);
        assert!(queue.wait().is_empty());
    }

    #[test]
    fn who_waits_is_woken_by_news_and_by_the_end() {
        let queue = ReadyQueue::default();
        let notifier = queue.notifier(5);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| [queue.wait(), queue.wait()]);
            notifier.announce();
            while !waits.is_finished() && !lock(&queue.0.told).tags.is_empty() {
                std::thread::yield_now();
            }
            queue.close();
            assert_eq!(waits.join().unwrap(), [vec![5], vec![]]);
        });
    }
}
