//! What a pass costs by its width, T(w), the number that decides whether speculation pays; and what
//! the machine could do at most in the same run.

use crate::cache::SeqCache;
use crate::error::EngineError;
use crate::load::Gguf;
use crate::model::{decoder::Decoder, rows::Row};
use crate::open::{EngineOptions, load_decoder, open_cpu};
use specdec_kernels::probe::{Multiplying, Reading};
use specdec_kernels::{Cpu, Level};
use std::time::{Duration, Instant};

/// Bytes of the bandwidth probe, several times what last caches hold.
const READ: usize = 256 << 20;
/// Widths between two bandwidth probes of a round.
const PROBE_EVERY: usize = 4;
/// Measurements of a rate that stands alone.
const REPEATS: usize = 5;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Passes {
    /// Committed positions before the rows of a pass.
    pub context: usize,
    /// Most rows of a pass.
    pub widest: usize,
    /// Rounds; each measures every width once.
    pub repeats: usize,
}

/// The machine's limits, medians of five measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Read bandwidth of all threads on huge pages, bytes per second.
    pub read: f64,
    /// Byte products with addition of all threads, per second, by the level's own instruction.
    pub multiply: f64,
}

/// One round: every width once, the probes in between.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Read bandwidths, bytes per second, in the order measured.
    pub read: Vec<f64>,
    /// Rate of byte products, per second.
    pub multiply: f64,
    /// Time of a pass of `index + 1` rows, all with logits.
    pub passes: Vec<Duration>,
}

/// What passes cost and what they do.
#[derive(Clone, Debug, PartialEq)]
pub struct PassCosts {
    /// Bytes of weights that a pass reads, whatever its width.
    pub weight_bytes: usize,
    /// Bytes of keys and values that a pass behind the context reads.
    pub kv_bytes: usize,
    /// Products with weights of one row.
    pub macs_per_row: usize,
    /// Threads of a pass.
    pub threads: usize,
    /// Instruction level of a pass.
    pub level: Level,
    /// The rounds, in the order measured.
    pub rounds: Vec<Round>,
}

/// Measures the machine's limits with the threads and the level of `options`.
///
/// # Errors
/// [`EngineError::Config`] and [`EngineError::Cpu`] for the options, [`EngineError::Pool`].
pub fn rates(options: &EngineOptions) -> Result<Rates, EngineError> {
    let probes = Probes::new(open_cpu(options)?)?;
    let median = |measure: &dyn Fn() -> Result<f64, EngineError>| {
        let mut rates = (0..REPEATS).map(|_| measure()).collect::<Result<Vec<_>, _>>()?;
        rates.sort_by(f64::total_cmp);
        Ok::<_, EngineError>(rates[REPEATS / 2])
    };
    Ok(Rates { read: median(&|| probes.read())?, multiply: median(&|| probes.multiply())? })
}

/// Times passes of 1 to `widest` rows. Widths and probes take turns, so that a machine whose speed
/// drifts drifts under all of them alike. `progress` hears rounds done and rounds in all.
///
/// # Errors
/// As [`crate::Engine::load`]; [`EngineError::Config`] when the rows do not fit the model's context.
pub fn pass_costs(
    options: &EngineOptions,
    passes: Passes,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PassCosts, EngineError> {
    let Passes { context, widest, repeats } = passes;
    let file = Gguf::open(&options.model)?;
    let mut options = options.clone();
    options.max_num_seqs = options.max_num_seqs.max(widest);
    let (mut decoder, longest) = load_decoder(&options, &file, &mut |_, _| ())?;
    if widest == 0 || repeats == 0 || context + widest > longest {
        return Err(EngineError::Config {
            field: "context",
            found: format!("{context} positions and {widest} rows, {repeats} times"),
            expected: format!("at least one row and one repeat, {longest} positions in all"),
        });
    }
    let probes = Probes::new(open_cpu(&options)?)?;
    let mut cache = prefilled(&mut decoder, context)?;
    let mut rounds = Vec::with_capacity(repeats);
    // The first round touches memory for the first time; it is not counted.
    for done in 0..=repeats {
        progress(done as u64, repeats as u64);
        let round = probes.round(&mut decoder, &mut cache, widest)?;
        if done > 0 {
            rounds.push(round);
        }
    }
    let config = decoder.config();
    Ok(PassCosts {
        weight_bytes: decoder.memory().weights_read,
        kv_bytes: context * options.kv_bytes_per_position(config),
        macs_per_row: config.macs_per_row(),
        threads: probes.cpu.pool.threads(),
        level: probes.cpu.level,
        rounds,
    })
}

/// What measures the machine.
struct Probes {
    cpu: Cpu,
    reading: Reading,
    multiplying: Multiplying,
}

impl Probes {
    fn new(cpu: Cpu) -> Result<Self, EngineError> {
        let no_memory = || EngineError::Config {
            field: "memory",
            found: "too little for the bandwidth probe".to_owned(),
            expected: format!("{} MiB beside the model", READ >> 20),
        };
        let reading = Reading::new(&cpu, READ)?.ok_or_else(no_memory)?;
        let multiplying = Multiplying::new(cpu.level);
        Ok(Self { cpu, reading, multiplying })
    }

    fn read(&self) -> Result<f64, EngineError> {
        let begin = Instant::now();
        self.reading.run(&self.cpu)?;
        Ok(self.reading.bytes() as f64 / begin.elapsed().as_secs_f64())
    }

    fn multiply(&self) -> Result<f64, EngineError> {
        let begin = Instant::now();
        self.multiplying.run(&self.cpu)?;
        Ok(self.multiplying.macs() as f64 / begin.elapsed().as_secs_f64())
    }

    fn round(
        &self,
        decoder: &mut Decoder,
        cache: &mut SeqCache,
        widest: usize,
    ) -> Result<Round, EngineError> {
        let (mut read, mut passes) = (Vec::new(), Vec::with_capacity(widest));
        for rows in 1..=widest {
            if rows % PROBE_EVERY == 1 {
                read.push(self.read()?);
            }
            passes.push(pass(decoder, cache, rows)?);
        }
        Ok(Round { read, multiply: self.multiply()?, passes })
    }
}

/// A chain of `rows` rows; tokens that differ, so that no two rows read the same embedding.
fn chain(rows: usize, vocab: usize, logits: bool) -> Vec<Row> {
    let row = |i: usize| Row {
        token: (i * 7919 % vocab) as u32,
        seq: 0,
        parent: i.checked_sub(1),
        logits,
        hidden: false,
    };
    (0..rows).map(row).collect()
}

fn prefilled(decoder: &mut Decoder, context: usize) -> Result<SeqCache, EngineError> {
    let mut cache = SeqCache::default();
    while cache.len() < context {
        let rows = (context - cache.len()).min(decoder.limits().0);
        let rows = chain(rows, decoder.config().vocab, false);
        decoder.forward(&mut [&mut cache], &rows)?;
        decoder.commit(&mut cache, &(0..rows.len()).collect::<Vec<_>>())?;
    }
    Ok(cache)
}

fn pass(decoder: &mut Decoder, cache: &mut SeqCache, rows: usize) -> Result<Duration, EngineError> {
    let rows = chain(rows, decoder.config().vocab, true);
    let begin = Instant::now();
    decoder.forward(&mut [cache], &rows)?;
    let time = begin.elapsed();
    decoder.commit(cache, &[])?;
    Ok(time)
}
