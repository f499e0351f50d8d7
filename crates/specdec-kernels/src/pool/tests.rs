use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};

use super::*;

fn counts(pool: &Pool, tiles: usize) -> Vec<u32> {
    let counts: Vec<AtomicU32> = (0..tiles).map(|_| AtomicU32::new(0)).collect();
    pool.run(tiles, &|tile| {
        counts[tile].fetch_add(1, Relaxed);
    })
    .unwrap();
    counts.into_iter().map(AtomicU32::into_inner).collect()
}

#[test]
fn every_tile_runs_once_whatever_the_number_of_threads() {
    for threads in 1..=5 {
        let pool = Pool::new(threads).unwrap();
        assert_eq!(pool.threads(), threads);
        for tiles in [0, 1, 2, 3, 17, 1000] {
            assert_eq!(counts(&pool, tiles), vec![1; tiles], "{threads} threads");
        }
    }
}

#[test]
fn tiny_regions_back_to_back_see_each_others_writes() {
    // With more threads than cores, workers sleep between regions.
    for (threads, rounds) in [(2, 100_000), (8, 5_000)] {
        let pool = Pool::new(threads).unwrap();
        let cells = [const { AtomicUsize::new(0) }; 8];
        // Each region reads what another tile wrote in the region before: only the pool's own
        // ordering makes that visible, since every access here is relaxed.
        for round in 0..rounds {
            let (from, to) = (4 * (round % 2), 4 * ((round + 1) % 2));
            pool.run(4, &|tile| {
                let before = cells[from + (tile + 1) % 4].load(Relaxed);
                cells[to + tile].store(before + 1, Relaxed);
            })
            .unwrap();
        }
        let last: Vec<usize> = cells[..4].iter().map(|cell| cell.load(Relaxed)).collect();
        assert_eq!(last, [rounds; 4]);
    }
}

#[test]
fn a_worker_that_takes_part_runs_on_another_thread() {
    let pool = Pool::new(2).unwrap();
    let both = Barrier::new(2);
    pool.run(2, &|_| {
        both.wait();
    })
    .unwrap();
}

#[test]
fn every_thread_begins_with_its_own_share() {
    let pool = Pool::new(3).unwrap();
    let (all, threads) = (Barrier::new(3), [const { OnceLock::new() }; 6]);
    for round in 0..200 {
        // Nobody leaves a first tile before all are in theirs, so none of them was taken over.
        pool.run(6, &|tile| {
            let here = std::thread::current().id();
            if tile % 2 == 0 {
                all.wait();
                assert_eq!(*threads[tile].get_or_init(|| here), here, "tile {tile}, run {round}");
            }
        })
        .unwrap();
    }
}

#[test]
fn parts_cover_all_in_order_and_differ_by_one_at_most() {
    for threads in 1..=5 {
        for all in [0, 1, 2, 5, 17] {
            let parts: Vec<_> = (0..threads).map(|thread| part(all, threads, thread)).collect();
            let sizes: Vec<usize> = parts.iter().map(ExactSizeIterator::len).collect();
            assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[threads - 1] <= 1);
            assert_eq!(
                parts.into_iter().flatten().collect::<Vec<_>>(),
                (0..all).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn nobody_waits_for_workers_that_do_not_come() {
    // No thread serves this region, although one is expected.
    let ran = AtomicUsize::new(0);
    let shared = Shared::new(3);
    for _ in 0..3 {
        let count = |_| {
            ran.fetch_add(1, Relaxed);
        };
        shared.region(&|thread| [4, 4, 10][thread], &count, std::iter::empty()).unwrap();
    }
    assert_eq!(ran.into_inner(), 30);
}

/// Fails, instead of hanging, when `test` hangs.
fn within_20_s(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    let end = wait.recv_timeout(Duration::from_secs(20));
    assert_ne!(end, Err(RecvTimeoutError::Timeout), "hung");
    thread.join().unwrap();
}

/// Waits for what must come, awake.
fn spin(come: impl Fn() -> bool) {
    let start = Instant::now();
    while !come() {
        assert!(start.elapsed() < Duration::from_secs(10), "it never came");
        std::hint::spin_loop();
    }
}

#[test]
fn a_caller_that_sleeps_over_a_long_tile_is_woken() {
    within_20_s(|| {
        let pool = Pool::new(2).unwrap();
        let (caller, both) = (std::thread::current().id(), Barrier::new(2));
        for _ in 0..20 {
            pool.run(2, &|_| {
                both.wait();
                if std::thread::current().id() != caller {
                    spin(|| pool.shared.word.load().caller_waits());
                }
            })
            .unwrap();
        }
    });
}

#[test]
fn sleeping_workers_are_woken() {
    within_20_s(|| {
        let pool = Pool::new(2).unwrap();
        let both = Barrier::new(2);
        for _ in 0..20 {
            spin(|| pool.shared.word.load().sleepers() > 0);
            // Passes only if the worker comes.
            pool.run(2, &|_| {
                both.wait();
            })
            .unwrap();
        }
    });
}

#[test]
fn a_panic_is_reported_and_the_pool_works_on() {
    for threads in [1, 2, 3] {
        let pool = Pool::new(threads).unwrap();
        for at in [0, 5, 9] {
            let error = pool.run(10, &|tile| assert!(tile != at, "tile {tile} is bad"));
            let Err(PoolError::Panicked { message }) = error else { panic!("{error:?}") };
            assert_eq!(message, format!("tile {at} is bad"));
            assert_eq!(counts(&pool, 10), vec![1; 10]);
        }
    }
}

#[test]
fn panics_of_every_kind_and_on_every_thread_are_reported() {
    let pool = Pool::new(2).unwrap();
    let both = Barrier::new(2);
    let error = pool.run(2, &|_| {
        both.wait();
        panic!("plain");
    });
    assert_eq!(error.unwrap_err().to_string(), "a kernel panicked: plain");
    let error = pool.run(2, &|_| std::panic::panic_any(7)).unwrap_err();
    assert_eq!(error.to_string(), "a kernel panicked: a panic without text");
    assert_eq!(counts(&pool, 4), vec![1; 4]);
}

#[test]
fn runs_of_several_threads_take_turns() {
    let pool = Pool::new(3).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(counts(&pool, 7), vec![1; 7]);
                }
            });
        }
    });
}

#[test]
fn a_run_inside_a_tile_is_worked_off_in_place() {
    let pool = Pool::new(2).unwrap();
    let inner = AtomicUsize::new(0);
    pool.run(4, &|_| {
        let here = std::thread::current().id();
        let run = pool.run(3, &|_| {
            assert_eq!(std::thread::current().id(), here);
            inner.fetch_add(1, Relaxed);
        });
        run.unwrap();
    })
    .unwrap();
    assert_eq!(inner.into_inner(), 12);
}

#[test]
fn sizes_without_sense_are_refused() {
    for threads in [0, 1025, usize::MAX] {
        let error = Pool::new(threads).err().unwrap();
        assert!(matches!(error, PoolError::ThreadCount { threads: found } if found == threads));
    }
}

/// What a forked child found, as its exit status: each bit is one thing that went wrong.
fn child(pool: Pool) -> i32 {
    let refused = |tiles| matches!(pool.run(tiles, &|_| {}), Err(PoolError::Forked { .. }));
    let mut wrong = i32::from(!refused(0)) | i32::from(!refused(1)) | i32::from(!refused(8));
    drop(pool);
    let own = Pool::new(2).is_ok_and(|own| own.run(8, &|_| {}).is_ok());
    wrong |= i32::from(!own) << 1;
    wrong
}

#[test]
fn a_forked_child_is_refused_at_once_and_may_make_its_own_pool() {
    let pool = Pool::new(2).unwrap();
    assert_eq!(counts(&pool, 4), vec![1; 4]);
    // SAFETY: the child only does what is under test, and leaves by `_exit` or by the alarm.
    let status = match unsafe { libc::fork() } {
        // SAFETY: calls that take and return numbers.
        0 => unsafe {
            // The watchdog: a child that hangs is killed, and the parent sees the signal.
            libc::alarm(20);
            libc::_exit(child(pool));
        },
        id => {
            let mut status = 0;
            // SAFETY: `id` is our child; `status` is ours to write.
            assert_eq!(unsafe { libc::waitpid(id, &raw mut status, 0) }, id);
            status
        }
    };
    assert!(libc::WIFEXITED(status), "the child was killed: status {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 0);
    assert_eq!(counts(&pool, 4), vec![1; 4]);
}
