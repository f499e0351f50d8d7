//! Many unseeded answers to one prompt, and the joint law that they should have.

use super::finish;
use specdec_core::rng::Key;
use specdec_core::row_ops::Scalar;
use specdec_core::{Budget, History, Law, Method, Processors, Scratch, SpecStats};
use specdec_engine::cache::SeqCache;
use specdec_engine::load::tokenizer::Tokenizer;
use specdec_engine::model::{decoder::Decoder, rows::Row};
use specdec_engine::request::SamplingParams;
use specdec_engine::scheduler::Scheduler;
use specdec_engine::sequence::{Sequence, Spec};
use specdec_testkit::chi_square::{ChiSquare, chi_square};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

/// Level of every test; seeds are fixed, so it either always or never passes.
pub const LEVEL: f64 = 1e-9;

/// Requests in memory at a time.
const QUEUED: usize = 4096;

/// One request, asked again and again, each time with numbers of its own.
pub struct Request {
    pub prompt: Vec<u32>,
    pub params: SamplingParams,
    pub method: Method,
    pub budget: Budget,
}

impl Request {
    /// The texts of the answers `ids`, counted, and what their drafts came to.
    pub fn answers(
        &self,
        scheduler: &mut Scheduler,
        tokenizer: &Tokenizer,
        ids: Range<u64>,
    ) -> (BTreeMap<Vec<u32>, u64>, SpecStats) {
        let vocab = scheduler.decoder().config().vocab;
        let processors = Processors::new(&self.params.sampling, vocab).unwrap();
        let mut counts = BTreeMap::new();
        let mut stats = SpecStats::default();
        for first in ids.clone().step_by(QUEUED) {
            for id in first..ids.end.min(first + QUEUED as u64) {
                let spec = self.spec(id, processors.clone());
                scheduler.add(Sequence::new(self.prompt.clone(), spec, tokenizer));
            }
            for answer in finish(scheduler).into_values() {
                stats.merge(&answer.stats);
                *counts.entry(answer.tokens).or_default() += 1;
            }
        }
        (counts, stats)
    }

    fn spec(&self, id: u64, processors: Processors) -> Spec {
        Spec {
            id,
            params: self.params.clone().into(),
            processors: processors.into(),
            key: Key { seed: id, sample: 3 },
            method: self.method,
            budget: Some(self.budget),
            context: 64,
            arrival: Instant::now(),
        }
    }

    /// The joint law of the answer, by plain passes over every continuation.
    pub fn joint(&self, decoder: &mut Decoder) -> BTreeMap<Vec<u32>, f64> {
        let processors = Processors::new(&self.params.sampling, decoder.config().vocab).unwrap();
        let mut joint = BTreeMap::from([(Vec::new(), 1.0)]);
        for _ in 0..self.params.max_tokens {
            let mut longer = BTreeMap::new();
            for (text, p) in joint {
                let law = self.law(decoder, &processors, &text);
                let possible = law.iter().filter(|(_, weight)| **weight > 0.0);
                longer.extend(
                    possible.map(|(token, _)| {
                        ([text.as_slice(), &[token]].concat(), p * law.prob(token))
                    }),
                );
            }
            joint = longer;
        }
        joint
    }

    /// The law of the token after `output`, from a fresh cache and a fresh history.
    fn law(&self, decoder: &mut Decoder, processors: &Processors, output: &[u32]) -> Law {
        let text = [self.prompt.as_slice(), output].concat();
        let row = |(i, &token): (usize, &u32)| Row {
            token,
            seq: 0,
            parent: i.checked_sub(1),
            logits: i + 1 == text.len(),
            hidden: false,
        };
        let rows: Vec<Row> = text.iter().enumerate().map(row).collect();
        let mut cache = SeqCache::default();
        decoder.forward(&mut [&mut cache], &rows).unwrap();
        let mut history = History::new(&self.prompt);
        for &token in output {
            history.push(token);
        }
        let mut law = Law::one_hot(0);
        let (ops, scratch) = (&mut Scalar::default(), &mut Scratch::default());
        let logits = decoder.logits(rows.len() - 1).unwrap();
        processors.law(logits, history.then(&[]), ops, scratch, &mut law).unwrap();
        decoder.release(&mut cache);
        law
    }
}

/// Tests the counts of texts against their joint law.
pub fn compare(mut counts: BTreeMap<Vec<u32>, u64>, joint: &BTreeMap<Vec<u32>, f64>) -> ChiSquare {
    let seen: Vec<u64> = joint.keys().map(|text| counts.remove(text).unwrap_or(0)).collect();
    assert!(counts.is_empty(), "impossible texts: {counts:?}");
    chi_square(&seen, &joint.values().copied().collect::<Vec<_>>())
}
