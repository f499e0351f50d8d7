//! The queue's places: one for a request whatever the number of its answers, free as soon as nobody
//! wants it, and never twice.

mod runs;

use crossbeam_channel::{Receiver, Sender, unbounded};
use runs::engines::{PATIENCE, Said, finish};
use runs::hooked::engine;
use runs::{greedy, seeded, tokens};
use specdec_engine::{Engine, EngineError};
use specdec_testkit::gguf::TinyModel;

fn prompt() -> Vec<u32> {
    tokens(1, 4, TinyModel::llama().vocab)
}

/// Holds the engine in its steps.
struct Gate {
    begun: Receiver<()>,
    go: Sender<()>,
}

/// An engine whose steps tell that they have begun, and go on when they are told or the gate is gone.
fn stepped(max_num_seqs: usize, max_queued: usize) -> (Engine, Gate) {
    let (begins, begun) = unbounded();
    let (go, allowed) = unbounded();
    let before = move || {
        let _ = begins.send(());
        let _ = allowed.recv();
        Ok(())
    };
    (engine(max_num_seqs, max_queued, Box::new(before)), Gate { begun, go })
}

fn free(max_num_seqs: usize, max_queued: usize) -> Engine {
    engine(max_num_seqs, max_queued, Box::new(|| Ok(())))
}

/// How many requests the engine takes beside those that are open.
fn room(engine: &Engine) -> usize {
    let mut taken = Vec::new();
    loop {
        match engine.submit(prompt(), greedy(1)) {
            Ok(handle) => taken.push(handle),
            Err(EngineError::QueueFull { .. }) => return taken.len(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_place_is_free_at_once_while_the_step_still_runs() {
    let (engine, gate) = stepped(1, 0);
    let first = engine.submit(prompt(), greedy(100)).unwrap();
    gate.begun.recv_timeout(PATIENCE).unwrap();
    gate.go.send(()).unwrap();
    gate.begun.recv_timeout(PATIENCE).unwrap();
    // The second step has begun with the request in it, and does not end before it is told.
    assert_eq!(room(&engine), 0);
    first.cancel();
    assert_eq!(room(&engine), 1);
    // Neither a second cancel, nor the drop, nor the border gives the place back again.
    first.cancel();
    drop(first);
    for _ in 0..50 {
        let next = engine.submit(prompt(), greedy(100)).unwrap();
        assert_eq!(room(&engine), 0);
        drop(next);
    }
    drop(gate);
    let last = engine.submit(prompt(), greedy(3)).unwrap();
    assert_eq!(finish(&last).tokens.len(), 3);
    assert_eq!(room(&engine), 1);
}

#[test]
fn several_answers_take_one_place_until_the_last_is_gone() {
    let (engine, gate) = stepped(2, 1);
    let mut answers = engine.submit_all(prompt(), greedy(100), 5, None).unwrap();
    assert_eq!(room(&engine), 2);
    let last = answers.pop().unwrap();
    drop(answers);
    assert_eq!(room(&engine), 2);
    drop(last);
    assert_eq!(room(&engine), 3);
    drop(gate);
    let answers = engine.submit_all(prompt(), greedy(7), 5, None).unwrap();
    for answer in &answers {
        assert_eq!(finish(answer).tokens.len(), 7);
    }
    assert_eq!(room(&engine), 3);
}

#[test]
fn several_answers_are_those_of_their_own_seeds() {
    let engine = free(3, 0);
    let all = |n| engine.submit_all(prompt(), seeded(5, 20), n, None).unwrap();
    let together: Vec<Said> = all(4).iter().map(finish).collect();
    for i in 0..4 {
        assert!(!together[..i].contains(&together[i]), "answer {i} has come before");
    }
    // What else was asked for changes none of them.
    assert_eq!(all(2).iter().map(finish).collect::<Vec<_>>(), together[..2]);
}

#[test]
fn places_are_neither_lost_nor_made_by_threads_that_come_and_go() {
    let engine = free(2, 3);
    std::thread::scope(|scope| {
        for salt in 0..4_usize {
            let engine = &engine;
            scope.spawn(move || {
                for round in 0..200 {
                    let n = 1 + (salt + round) % 3;
                    let Ok(handles) = engine.submit_all(prompt(), greedy(6), n as u32, None) else {
                        continue;
                    };
                    for (at, handle) in handles.iter().enumerate() {
                        match (salt + round + at) % 4 {
                            0 => drop(finish(handle)),
                            1 => drop(handle.recv_timeout(PATIENCE)),
                            2 => handle.cancel(),
                            _ => {}
                        }
                    }
                }
            });
        }
    });
    assert_eq!(room(&engine), 5);
}
