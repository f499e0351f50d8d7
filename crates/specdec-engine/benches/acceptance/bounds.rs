//! What could be accepted, from the laws of both models along given texts.

use std::path::Path;

use specdec_core::bounds::{best_acceptance, chain_acceptance, coupled_acceptance};
use specdec_core::{History, Law, Processors, Sampling, Scratch, TokenId};
use specdec_engine::EngineOptions;
use specdec_engine::cache::SeqCache;
use specdec_engine::load::{Gguf, Tokenizer};
use specdec_engine::model::{decoder::Decoder, rows::Row};
use specdec_engine::open::load_decoder;
use specdec_kernels::SimdRows;

use crate::Failure;
use crate::answers::{Answer, CONTEXT, Pair};
use crate::interval::Interval;

/// Rows of a pass, all of them with logits.
const CHUNK: usize = 32;

/// Means over all places of all texts, each with its interval.
pub(crate) fn report(
    pair: &Pair,
    answers: &[Answer],
    temperature: f64,
    nodes: usize,
) -> Result<Vec<(String, Interval)>, Failure> {
    let mut places = Places::load(pair, temperature)?;
    let all: Vec<Vec<Place>> =
        answers.iter().map(|answer| places.along(answer)).collect::<Result<_, _>>()?;
    let mean = |value: &dyn Fn(&Place) -> f64| {
        let sum = |text: &Vec<Place>| (text.iter().map(value).sum(), text.len() as f64);
        Interval::of(&all.iter().map(sum).collect::<Vec<_>>())
    };
    let mut lines = vec![
        ("coupled".to_owned(), mean(&|place| place.coupled)),
        ("one draft, any rule (1 - TV): standard's".to_owned(), mean(&|place| place.best[0])),
    ];
    for drafts in 2..=BEST {
        let name = format!("{drafts} independent drafts, any rule");
        lines.push((name, mean(&|place| place.best[drafts - 1])));
    }
    let steps: Vec<(f64, f64)> = all.iter().map(|text| chains(text, nodes)).collect();
    lines.push(("tokens per step, any rule".to_owned(), Interval::of(&steps)));
    Ok(lines)
}

/// The sum over all starts of the most tokens that a step with a drawn chain can emit, and the
/// number of starts.
///
/// No exact rule accepts the first i tokens with more than sum over x of min(p(x), q(x)), p and q
/// being the laws of i tokens: their overlap. That is the mean of min(1, q(x) / p(x)) over texts x
/// of the target, so each window of these texts is an estimate without bias.
fn chains(text: &[Place], nodes: usize) -> (f64, f64) {
    let emitted = |window: &[Place]| {
        let ratios = window.iter().scan(1.0, |product, place| {
            *product *= place.ratio;
            Some(f64::min(*product, 1.0))
        });
        1.0 + ratios.sum::<f64>()
    };
    let windows = text.windows(nodes);
    (windows.clone().map(emitted).sum(), windows.count() as f64)
}

/// Most drafts of one place that are asked about.
const BEST: usize = 4;

/// One place of a text.
struct Place {
    /// The most of 1, 2, .. independent drafts.
    best: [f64; BEST],
    coupled: f64,
    /// q / p of the token that the text has there.
    ratio: f64,
}

struct Places {
    target: Decoder,
    draft: Decoder,
    processors: Processors,
    scratch: (SimdRows, Scratch),
}

impl Places {
    fn load(pair: &Pair, temperature: f64) -> Result<Self, Failure> {
        let open = |path: &Path| -> Result<(Decoder, usize), Failure> {
            let mut options = EngineOptions::new(path);
            options.max_num_seqs = CHUNK;
            options.max_model_len = Some(CONTEXT);
            let file = Gguf::open(path)?;
            let vocab = Tokenizer::from_gguf(file.header())?.vocab_size();
            let (decoder, _) = load_decoder(&options, &file, &mut |_, _| ())?;
            let vocab = vocab.min(decoder.config().vocab);
            Ok((decoder, vocab))
        };
        let ((target, vocab), (draft, _)) = (open(pair.target)?, open(pair.draft)?);
        let sampling = Sampling { temperature, ..Sampling::default() };
        let processors = Processors::new(&sampling, vocab)?;
        Ok(Self { target, draft, processors, scratch: (SimdRows::default(), Scratch::default()) })
    }

    /// The places of an answer.
    fn along(&mut self, answer: &Answer) -> Result<Vec<Place>, Failure> {
        let text = [answer.prompt.as_slice(), &answer.tokens].concat();
        let mut caches = [SeqCache::default(), SeqCache::default()];
        let mut places = Vec::new();
        for first in (0..text.len()).step_by(CHUNK) {
            let chunk = &text[first..text.len().min(first + CHUNK)];
            for (decoder, cache) in [&mut self.target, &mut self.draft].into_iter().zip(&mut caches)
            {
                decoder.forward(&mut [cache], &rows(chunk))?;
                decoder.commit(cache, &(0..chunk.len()).collect::<Vec<_>>())?;
            }
            for row in 0..chunk.len() {
                let next = first + row + 1;
                if (answer.prompt.len()..text.len()).contains(&next) {
                    places.push(self.place(row, text[next])?);
                }
            }
        }
        for (decoder, cache) in [&mut self.target, &mut self.draft].into_iter().zip(&mut caches) {
            decoder.release(cache);
        }
        Ok(places)
    }

    fn place(&mut self, row: usize, next: TokenId) -> Result<Place, Failure> {
        let (ops, edited) = &mut self.scratch;
        let mut law = |decoder: &Decoder| -> Result<Law, Failure> {
            let logits = decoder.logits(row).ok_or("a row without logits")?;
            let mut law = Law::one_hot(0);
            self.processors.law(logits, History::default().then(&[]), ops, edited, &mut law)?;
            Ok(law)
        };
        let (p, q) = (law(&self.target)?, law(&self.draft)?);
        let best = std::array::from_fn(|i| match i {
            0 => chain_acceptance(&p, &q),
            more => best_acceptance(&p, &q, more + 1),
        });
        let ratio = q.prob(next) / p.prob(next);
        Ok(Place { best, coupled: coupled_acceptance(&p, &q), ratio })
    }
}

fn rows(tokens: &[TokenId]) -> Vec<Row> {
    let row = |(i, &token): (usize, &TokenId)| Row {
        token,
        seq: 0,
        parent: i.checked_sub(1),
        logits: true,
        hidden: false,
    };
    tokens.iter().enumerate().map(row).collect()
}
