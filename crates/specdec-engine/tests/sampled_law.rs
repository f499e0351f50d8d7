//! Law L1 for sampled text through the whole engine: the joint law of four tokens with a draft model
//! is the target's, and the usual ways to spoil a draft's law are seen by the same test.

mod runs;

use runs::sampled::{LEVEL, Request, compare};
use runs::{open, tokens};
use specdec_core::chances::{Coupled, Independent};
use specdec_core::rng::Key;
use specdec_core::{
    Ask, Budget, DraftError, DraftTree, Drafter, Law, Method, Ngram, Origin, Sampling, TreeError,
};
use specdec_engine::SamplingParams;
use specdec_engine::draft::{Merged, ModelDrafter, ModelDrafterSizes};
use specdec_engine::load::Tokenizer;
use specdec_engine::model::decoder::Decoder;
use specdec_engine::scheduler::Scheduler;
use specdec_testkit::gguf::TinyModel;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const TOKENS: usize = 4;
/// Few tokens, so that every text is seen often, and a cut, so that laws have one.
const ALLOWED: [u32; 5] = [70, 71, 72, 73, 74];
const TOP_K: u32 = 4;
const RUNS: u64 = 8000;

fn target() -> TinyModel {
    TinyModel { spread: 1.5, ..TinyModel::llama() }
}

fn sampling() -> Sampling {
    Sampling {
        temperature: 1.1,
        top_k: TOP_K,
        frequency_penalty: 0.7,
        allowed_token_ids: Some(ALLOWED.to_vec()),
        ..Sampling::default()
    }
}

fn prompt() -> Vec<u32> {
    tokens(21, 6, target().vocab)
}

fn engine(model: &TinyModel) -> (Decoder, Arc<Tokenizer>) {
    open(&model.temp_file(), |options| {
        options.max_num_seqs = 16;
        options.max_model_len = Some(64);
        options.speculation =
            Some(specdec_engine::Speculation { num_speculative_tokens: 6, ..Default::default() });
    })
}

/// The target with half of its layers: often right.
fn draft_model(branching: usize) -> ModelDrafter {
    drafter_on(&TinyModel { layers: 1, ..target() }, branching)
}

/// A model with nothing in common but its vocabulary: often wrong, so that what a rejection does
/// decides the law.
fn far_model(branching: usize) -> ModelDrafter {
    drafter_on(&TinyModel { layers: 1, seed: 2, ..target() }, branching)
}

fn drafter_on(model: &TinyModel, branching: usize) -> ModelDrafter {
    let sizes = ModelDrafterSizes {
        context: 64,
        vocab: model.vocab,
        target_vocab: model.vocab,
        nodes: 4,
        branching,
        draws: true,
    };
    ModelDrafter::new(engine(model).0, sizes)
}

/// How a draft's law is spoiled.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spoil {
    /// Not at all.
    Honest,
    /// Drawn without replacement, said to be drawn with it.
    SaidIndependent,
    /// Two drawn with replacement, the second of two equal ones lost, said to be drawn without.
    SaidWithout,
    /// Drawn from the cut law, said to be drawn from the model's own.
    SaidUncut,
    /// Drawn, said to be chosen by rule: the law stays right, acceptance falls.
    SaidDeterministic,
}

struct Spoiled {
    inner: Box<dyn Drafter>,
    how: Spoil,
    seen: Arc<Mutex<Vec<Drawn>>>,
}

/// A drawn child: whose, where, which token, from which law.
struct Drawn {
    id: u64,
    position: usize,
    token: u32,
    law: Arc<Law>,
}

impl Spoiled {
    fn relabel(&self, tree: &DraftTree) -> DraftTree {
        let mut other = DraftTree::new();
        for node in 0..tree.len() {
            let origin = match (tree.origin(node), self.how) {
                (Origin::Drawn(law), Spoil::SaidIndependent) => Origin::Independent(law.clone()),
                (Origin::Drawn(law), Spoil::SaidUncut) => Origin::Drawn(Arc::new(flatter(law))),
                (Origin::Drawn(_), Spoil::SaidDeterministic) => Origin::Deterministic,
                (origin, _) => origin.clone(),
            };
            other.push(tree.parent(node), tree.token(node), origin).unwrap();
        }
        other
    }
}

/// Two children of the context, drawn with replacement.
fn redraw(ask: &Ask<'_>) -> DraftTree {
    let mut tree = DraftTree::new();
    let Some(&first) = ask.tree.children(None).first() else { return tree };
    let Origin::Drawn(law) = ask.tree.origin(first) else { return tree };
    let committed = ask.context.len();
    let mut draws = Independent { key: ask.rule.key, committed: committed as u32 };
    let mut drawn = DraftTree::new();
    for node in drawn.draw_independent(None, law, 2, committed, &mut draws) {
        // The second of two equal tokens is lost.
        let _ = tree.push(None, drawn.token(node), Origin::Drawn(Arc::clone(law)));
    }
    tree
}

/// As if the tail that top-k cuts were still there.
fn flatter(law: &Law) -> Law {
    let weight = |token: u32| law.weight(token).max(*law.total() / 3.0);
    Law::from_sparse(ALLOWED.to_vec(), ALLOWED.map(weight).to_vec()).unwrap()
}

impl Drafter for Spoiled {
    fn propose(&mut self, asks: &mut [Ask<'_>]) -> Result<(), DraftError> {
        self.inner.propose(asks)?;
        for ask in asks.iter_mut() {
            for node in 0..ask.tree.len() {
                if let Origin::Drawn(law) = ask.tree.origin(node) {
                    self.seen.lock().unwrap().push(Drawn {
                        id: ask.id,
                        position: ask.context.len() + ask.tree.depth(node) - 1,
                        token: ask.tree.token(node),
                        law: Arc::clone(law),
                    });
                }
            }
            ask.tree = match self.how {
                Spoil::SaidWithout => redraw(ask),
                _ => self.relabel(&ask.tree),
            };
        }
        Ok(())
    }

    fn commit(&mut self, id: u64, path: &[usize]) -> Result<(), DraftError> {
        let own = if self.how == Spoil::SaidWithout { &[] } else { path };
        self.inner.commit(id, own)
    }

    fn release(&mut self, id: u64) {
        self.inner.release(id);
    }
}

fn request(method: Method) -> Request {
    let params = SamplingParams {
        max_tokens: TOKENS,
        ignore_eos: true,
        sampling: sampling(),
        ..SamplingParams::default()
    };
    Request { prompt: prompt(), params, method, budget: Budget { nodes: 6, depth: 6 } }
}

/// What came out of many unseeded runs, and the share of drafts that were accepted.
fn counts(drafter: Box<dyn Drafter>, method: Method) -> (BTreeMap<Vec<u32>, u64>, f64) {
    let (decoder, tokenizer) = engine(&target());
    let mut scheduler = Scheduler::new(decoder, Some(drafter), Arc::clone(&tokenizer), 16);
    let (counts, stats) = request(method).answers(&mut scheduler, &tokenizer, 0..RUNS);
    (counts, stats.draft_acceptance_rate())
}

fn p_value(drafter: Box<dyn Drafter>, method: Method) -> (f64, f64) {
    let joint = request(method).joint(&mut engine(&target()).0);
    let (counts, acceptance) = counts(drafter, method);
    (compare(counts, &joint).p_value, acceptance)
}

fn spoiled(model: ModelDrafter, how: Spoil) -> Spoiled {
    Spoiled { inner: Box::new(model), how, seen: Arc::default() }
}

#[test]
fn drawn_chains_and_trees_keep_the_law() {
    for method in [Method::Standard, Method::Traversal] {
        for branching in [1, 2] {
            let (p, _) = p_value(Box::new(far_model(branching)), method);
            assert!(p > LEVEL, "{method:?} {branching}, far: {p:e}");
            let (p, acceptance) = p_value(Box::new(draft_model(branching)), method);
            println!("{method:?}, {branching} a level: p = {p:.3}, {acceptance:.3} accepted");
            assert!(p > LEVEL, "{method:?} {branching}: {p:e}");
            assert!(acceptance > 0.2, "{method:?} {branching}: {acceptance}");
        }
    }
}

#[test]
fn what_is_drawn_and_what_is_proposed_by_rule_keep_the_law_together() {
    let sources: Vec<Box<dyn Drafter>> =
        vec![Box::new(draft_model(2)), Box::new(Ngram::new(1, 2, 2).unwrap())];
    let (p, _) = p_value(Box::new(Merged::new(sources)), Method::Traversal);
    assert!(p > LEVEL, "{p:e}");
}

#[test]
fn t4_drawn_without_and_verified_with_replacement_is_seen() {
    let (p, _) = p_value(Box::new(spoiled(far_model(2), Spoil::SaidIndependent)), Method::Standard);
    assert!(p < LEVEL, "{p:e}");
}

/// A token that is drawn twice can only be one child. Whether the second draw counted is then a
/// function of what was drawn before it, and given that it did, it was drawn without the first: so
/// the trap has no way in, and losing the second is no bias.
#[test]
fn t5_a_token_drawn_twice_is_one_child_and_the_law_stays() {
    let law = Arc::new(Law::from_sparse(vec![1, 2], vec![0.5, 0.5]).unwrap());
    let mut tree = DraftTree::new();
    tree.push(None, 1, Origin::Drawn(Arc::clone(&law))).unwrap();
    assert!(matches!(tree.push(None, 1, Origin::Drawn(law)), Err(TreeError::Duplicate { .. })));
    let (p, _) = p_value(Box::new(spoiled(far_model(2), Spoil::SaidWithout)), Method::Standard);
    assert!(p > LEVEL, "{p:e}");
}

#[test]
fn t11_a_draft_law_without_the_cut_that_it_was_drawn_with_is_seen() {
    let (p, _) = p_value(Box::new(spoiled(draft_model(1), Spoil::SaidUncut)), Method::Standard);
    assert!(p < LEVEL, "{p:e}");
}

#[test]
fn t15_a_drawn_token_scored_as_certain_loses_acceptance() {
    let (p, certain) =
        p_value(Box::new(spoiled(draft_model(1), Spoil::SaidDeterministic)), Method::Standard);
    let (_, drawn) = p_value(Box::new(spoiled(draft_model(1), Spoil::Honest)), Method::Standard);
    assert!(p > LEVEL, "{p:e}");
    assert!(certain < 0.9 * drawn, "{certain} against {drawn}");
}

#[test]
fn t10_the_law_kept_is_the_law_drawn_from_bit_for_bit() {
    let drafter = spoiled(draft_model(1), Spoil::Honest);
    let seen = Arc::clone(&drafter.seen);
    counts(Box::new(drafter), Method::Coupled);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert!(seen.len() as u64 > RUNS);
    let race = |drawn: &Drawn, law: &Law| {
        Coupled { key: Key { seed: drawn.id, sample: 3 } }.race(drawn.position, law)
    };
    assert!(seen.iter().all(|drawn| race(drawn, &drawn.law) == drawn.token));
    // The same with a law in bf16 is not the same.
    let other =
        seen.iter().filter(|drawn| race(drawn, &rounded(&drawn.law)) != drawn.token).count();
    assert!(other > 0, "none of {} draws tells bf16 from f64", seen.len());
}

/// The law with weights of 8 significant bits.
fn rounded(law: &Law) -> Law {
    let bf16 = |&weight: &f64| f64::from(f32::from_bits((weight as f32).to_bits() & 0xffff_0000));
    let (ids, weights) = law.iter().map(|(token, weight)| (token, bf16(weight))).unzip();
    Law::from_sparse(ids, weights).unwrap()
}
