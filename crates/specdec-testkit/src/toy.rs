//! Toy models: a law of integer weights for every prefix, made from a seed, so that the law of a
//! whole text is known exactly.

use specdec_core::rng::philox;
use specdec_core::{Law, Number, TokenId};

/// A stream of numbers from a seed and a list of words; the same on every machine.
#[derive(Debug, Clone)]
pub struct Words {
    key: [u32; 2],
    counter: [u32; 4],
    block: [u32; 4],
    used: usize,
}

impl Words {
    /// The stream of (seed, label, tokens): all three decide it.
    pub fn new(seed: u64, label: u32, tokens: &[TokenId]) -> Self {
        let key = [seed as u32, (seed >> 32) as u32];
        let mut counter = [label, tokens.len() as u32, 0, 0];
        for &token in tokens {
            counter[2] = token;
            counter = philox(counter, key);
        }
        Self { key, counter, block: [0; 4], used: 4 }
    }

    /// The next word.
    pub fn word(&mut self) -> u32 {
        if self.used == 4 {
            self.counter[3] = self.counter[3].wrapping_add(1);
            self.block = philox(self.counter, self.key);
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    /// A number of `0..n`; n >= 1.
    pub fn below(&mut self, n: usize) -> usize {
        self.word() as usize % n
    }

    /// True once in n times, on average.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A target and a draft over a small vocabulary, both depending on the whole prefix.
#[derive(Debug, Clone, Copy)]
pub struct Toy {
    /// Number of tokens.
    pub vocab: usize,
    /// All laws follow from it.
    pub seed: u64,
    /// Whether the target is asked at temperature 0: all of its law on the largest weight, the
    /// first of equal ones.
    pub greedy: bool,
}

const TARGET: u32 = 1;
const DRAFT: u32 = 2;

impl Toy {
    /// The target's weights after `prefix`: zeros, ties and certain tokens among them.
    pub fn target(&self, prefix: &[TokenId]) -> Vec<u32> {
        let mut weights = self.warm(prefix);
        if self.greedy {
            let largest = weights.iter().max().copied();
            let best = weights.iter().position(|weight| Some(*weight) == largest);
            weights.iter_mut().enumerate().for_each(|(i, w)| *w = u32::from(Some(i) == best));
        }
        weights
    }

    /// The target's weights before the temperature.
    fn warm(&self, prefix: &[TokenId]) -> Vec<u32> {
        random_weights(&mut Words::new(self.seed, TARGET, prefix), self.vocab)
    }

    /// The draft's weights after `prefix`: sometimes the target's own, sometimes where the target
    /// is 0, sometimes unrelated. Soft even where the target is greedy.
    pub fn draft(&self, prefix: &[TokenId]) -> Vec<u32> {
        let target = self.warm(prefix);
        let mut words = Words::new(self.seed, DRAFT, prefix);
        let complement: Vec<u32> = target.iter().map(|&w| u32::from(w == 0)).collect();
        match words.below(6) {
            0 => target,
            1 if complement.iter().any(|&w| w > 0) => complement,
            _ => random_weights(&mut words, self.vocab),
        }
    }

    /// The probability of `text` after `prefix`, as plain decoding gives it.
    pub fn probability<N: Number + From<u32>>(&self, prefix: &[TokenId], text: &[TokenId]) -> N {
        let mut context = prefix.to_vec();
        let mut product = N::one();
        for &token in text {
            product = product * law::<N>(&self.target(&context)).prob(token);
            context.push(token);
        }
        product
    }
}

/// The law of integer weights.
///
/// # Panics
/// If all of them are 0.
pub fn law<N: Number + From<u32>>(weights: &[u32]) -> Law<N> {
    Law::from_dense(weights.iter().map(|&w| N::from(w)).collect()).expect("a positive weight")
}

/// All texts of `length` tokens.
pub fn texts(vocab: usize, length: usize) -> Vec<Vec<TokenId>> {
    (0..length).fold(vec![Vec::new()], |texts, _| {
        let longer = |text: &Vec<TokenId>, token| [text.as_slice(), &[token]].concat();
        let extend = |text: &Vec<TokenId>| {
            (0..vocab as TokenId).map(|token| longer(text, token)).collect::<Vec<_>>()
        };
        texts.iter().flat_map(extend).collect()
    })
}

fn random_weights(words: &mut Words, vocab: usize) -> Vec<u32> {
    let mut weights = vec![0; vocab];
    if words.once_in(6) {
        weights[words.below(vocab)] = 1;
        return weights;
    }
    for weight in &mut weights {
        *weight = if words.once_in(4) { 0 } else { 1 + words.below(5) as u32 };
    }
    if weights.iter().all(|&w| w == 0) {
        weights[words.below(vocab)] = 1;
    }
    weights
}
