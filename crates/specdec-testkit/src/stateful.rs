//! Toy models under the processors that ship, penalties and masks among them: the law of every token
//! depends on all tokens before it.

use specdec_core::row_ops::Scalar;
use specdec_core::verify::PathLaws;
use specdec_core::{History, Law, Processors, Sampling, Scratch, TokenId};

use crate::drafts::Drafts;
use crate::enumerate::Branches;
use crate::rational::Rational;
use crate::rounds::{Verifier, emitted};
use crate::toy::{Toy, Words};

const ROW: u32 = 5;
const SAMPLING: u32 = 6;
const PROMPT: [TokenId; 2] = [0, 1];

/// A toy's logits, and what a request asks to be done to them.
#[derive(Debug, Clone)]
pub struct Stateful {
    /// Vocabulary, drafts and seed.
    pub toy: Toy,
    /// The request.
    pub sampling: Sampling,
}

impl Stateful {
    /// A request of a seed: penalties, masks and cuts, each in some of the instances.
    pub fn new(toy: Toy) -> Self {
        let mut words = Words::new(toy.seed, SAMPLING, &[]);
        let token = |words: &mut Words| words.below(toy.vocab) as TokenId;
        let mut sampling = Sampling::default();
        if words.once_in(2) {
            sampling.repetition_penalty = [1.5, 0.5][words.below(2)];
        }
        if words.once_in(2) {
            sampling.frequency_penalty = 0.75;
        }
        if words.once_in(2) {
            sampling.presence_penalty = -0.5;
        }
        if words.once_in(2) {
            // A grammar of sorts: what may follow depends on what came before.
            sampling.bad_words = vec![vec![token(&mut words), token(&mut words)], vec![1, 0, 1]];
        }
        if words.once_in(2) {
            sampling.min_tokens = 2;
            sampling.end_token_ids = vec![token(&mut words)];
        }
        match words.below(5) {
            0 => sampling.top_k = 2,
            1 => sampling.top_p = 0.7,
            2 => sampling.min_p = 0.3,
            3 => sampling.temperature = 0.0,
            _ => sampling.temperature = 0.5,
        }
        Self { toy, sampling }
    }

    /// Logits after `text`.
    fn row(&self, text: &[TokenId]) -> Vec<f32> {
        let mut words = Words::new(self.toy.seed, ROW, text);
        (0..self.toy.vocab).map(|_| words.below(9) as f32 / 2.0 - 2.0).collect()
    }

    fn law(&self, text: &[TokenId], history: &History, path: &[TokenId]) -> Law<Rational> {
        let processors = Processors::new(&self.sampling, self.toy.vocab).expect("in range");
        let (ops, scratch) = (&mut Scalar::default(), &mut Scratch::default());
        let mut law = Law::one_hot(0);
        let row = self.row(&[text, path].concat());
        processors.law(&row, history.then(path), ops, scratch, &mut law).expect("a token is left");
        let exact = |weight: f64| Rational::try_from(weight).expect("finite");
        let (ids, weights) = law.iter().map(|(id, &weight)| (id, exact(weight))).unzip();
        Law::from_sparse(ids, weights).expect("a law")
    }

    /// The probability of `text`, as plain decoding from a fresh history gives it.
    pub fn probability(&self, text: &[TokenId]) -> Rational {
        let mut product = Rational::new(1, 1);
        for (i, &token) in text.iter().enumerate() {
            let mut history = History::new(&PROMPT);
            text[..i].iter().for_each(|&token| history.push(token));
            product = product * self.law(&text[..i], &history, &[]).prob(token);
        }
        product
    }

    /// The first `length` tokens of a whole generation, whose history is kept from round to round.
    pub fn generate(
        &self,
        drafts: &Drafts,
        verifier: Verifier,
        length: usize,
        branches: &mut Branches,
    ) -> Vec<TokenId> {
        let mut text = Vec::new();
        let mut history = History::new(&PROMPT);
        while text.len() < length {
            let tree = drafts.propose(&self.toy, &text, branches);
            let (mut path, mut buffers) = (Vec::new(), Vec::new());
            let mut laws = PathLaws::new(&tree, &mut buffers, |node, law| {
                tree.tokens_to(node, &mut path);
                *law = self.law(&text, &history, &path);
                Ok(())
            });
            let outcome = verifier.verify(&tree, &mut laws, text.len(), branches).expect("laws");
            for token in emitted(&tree, &outcome) {
                history.push(token);
                text.push(token);
            }
        }
        text.truncate(length);
        text
    }
}
