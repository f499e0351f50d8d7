//! Where the time of a step goes: linear products, attention, the float operations between them,
//! the law of the next token, and the rest.
//!
//! `cargo bench -p specdec-engine --bench profile -- MODEL.gguf [REPEATS]`, `THREADS` (2) and
//! `LEVEL` (the best) from the environment. One JSON object a line: milliseconds, medians.
//!
//! The decoder runs on the real device behind a wrapper that takes the time at every operation. An
//! operation that does two things (a norm and its products) is taken apart by running the small
//! one once more on a twin of the same shape, right behind it; the twin's own time counts nowhere.
//! `region` is an empty region of the pool, opened in the middle of a layer: what every parallel
//! part pays for coming and going, which is in the other figures too.

mod timed;
mod twins;

use std::env;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Map, Value, json};
use specdec_core::law::{History, Processors, Scratch};
use specdec_core::{Law, Sampling};
use specdec_engine::cache::SeqCache;
use specdec_engine::load::{Gguf, ModelConfig};
use specdec_engine::model::{decoder::Decoder, rows::Row, weights::Weights};
use specdec_engine::ops::cpu::{CpuOps, CpuSizes};
use specdec_kernels::{Cpu, KvType, Level, PAGE, SimdRows};
use timed::{Phase, Timed, Times};
use twins::Twins;

const WIDTHS: [usize; 4] = [1, 4, 8, 16];
const CONTEXTS: [usize; 2] = [256, 4096];
const PREFILL: usize = 512;
/// Rows of a prefill chunk.
const CHUNK: usize = specdec_engine::open::PREFILL_ROWS;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let Some(path) = args.first() else {
        println!("profile: name a model file to see where its steps spend their time");
        return Ok(());
    };
    let repeats = args.get(1).map_or(Ok(21), |text| text.parse())?;
    let mut bench = Bench::load(path)?;
    for context in CONTEXTS {
        let mut cache = SeqCache::default();
        bench.fill(&mut cache, context)?;
        for width in WIDTHS {
            let step = bench.step(&mut cache, width, repeats)?;
            println!("{}", report(path, width, context, &step));
        }
        bench.decoder.release(&mut cache);
    }
    let prefill = bench.prefill(repeats.div_ceil(5))?;
    println!("{}", report(path, PREFILL, 0, &prefill));
    Ok(())
}

struct Bench {
    decoder: Decoder,
    times: Arc<Mutex<Times>>,
}

impl Bench {
    fn load(path: &str) -> Result<Self, Failure> {
        let file = Gguf::open(path)?;
        let config = ModelConfig::from_gguf(file.header())?;
        let threads = env::var("THREADS").map_or(Ok(2), |n| n.parse())?;
        let level = env::var("LEVEL").map_or(Ok(Level::detect()), |name| name.parse())?;
        let cpu = Cpu::with_level(threads, level)?;
        let most = CONTEXTS[1] + CHUNK;
        let sizes = CpuSizes {
            rows: CHUNK,
            logits: WIDTHS[3],
            hidden: 0,
            captures: 0,
            pages: most.div_ceil(PAGE),
            kv_type: KvType::F16,
        };
        let ops = CpuOps::load(cpu, &config, &mut Weights::new(&file, &mut |_, _| ()), sizes)?;
        let times = Arc::new(Mutex::new(Times::default()));
        let twins = Twins::new(&file, &config, CHUNK);
        let timed = Timed::new(ops, twins, Arc::clone(&times));
        Ok(Self { decoder: Decoder::new(Box::new(timed), Vec::new())?, times })
    }

    /// Fills a cache with `len` positions.
    fn fill(&mut self, cache: &mut SeqCache, len: usize) -> Result<(), Failure> {
        while cache.len() < len {
            let rows = (len - cache.len()).min(CHUNK);
            let last = cache.len() + rows == len;
            self.decoder.forward(&mut [cache], &self.chain(rows, |row| last && row + 1 == rows))?;
            self.decoder.commit(cache, &(0..rows).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Tokens that differ, so that no two rows read the same embedding.
    fn chain(&self, rows: usize, logits: impl Fn(usize) -> bool) -> Vec<Row> {
        let vocab = self.decoder.config().vocab;
        let token = |i: usize| (i * 7919 % vocab) as u32;
        let parent = |i: usize| i.checked_sub(1);
        let row = |i| Row {
            token: token(i),
            seq: 0,
            parent: parent(i),
            logits: logits(i),
            hidden: false,
        };
        (0..rows).map(row).collect()
    }

    /// Steps of `width` rows behind the cache, which stays as it is.
    fn step(
        &mut self,
        cache: &mut SeqCache,
        width: usize,
        repeats: usize,
    ) -> Result<Vec<Times>, Failure> {
        let rows = self.chain(width, |_| true);
        let processors = Processors::new(&Sampling::greedy(), self.decoder.config().vocab)?;
        let history = History::new(&[]);
        let (mut ops, mut edited, mut law) =
            (SimdRows::default(), Scratch::default(), Law::one_hot(0));
        let mut all = Vec::new();
        for _ in 0..=repeats {
            self.begin();
            let begin = Instant::now();
            self.decoder.forward(&mut [cache], &rows)?;
            let forward = begin.elapsed();
            for row in 0..width {
                let row = self.decoder.logits(row).ok_or("no logits")?;
                processors.law(row, history.then(&[]), &mut ops, &mut edited, &mut law)?;
            }
            let laws = begin.elapsed().saturating_sub(forward);
            self.decoder.commit(cache, &[])?;
            all.push(self.end(begin.elapsed(), laws));
        }
        all.remove(0);
        Ok(all)
    }

    fn prefill(&mut self, repeats: usize) -> Result<Vec<Times>, Failure> {
        let mut all = Vec::new();
        for _ in 0..=repeats {
            let mut cache = SeqCache::default();
            self.begin();
            let begin = Instant::now();
            self.fill(&mut cache, PREFILL)?;
            all.push(self.end(begin.elapsed(), std::time::Duration::ZERO));
            self.decoder.release(&mut cache);
        }
        all.remove(0);
        Ok(all)
    }

    fn begin(&self) {
        *self.times.lock().expect("no panic") = Times::default();
    }

    fn end(&self, total: std::time::Duration, law: std::time::Duration) -> Times {
        let mut times = self.times.lock().expect("no panic").clone();
        times.close(total, law);
        times
    }
}

fn report(model: &str, rows: usize, context: usize, steps: &[Times]) -> Value {
    let median = |of: &dyn Fn(&Times) -> f64| {
        let mut values: Vec<f64> = steps.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        (values[values.len() / 2] * 1e4).round() / 1e4
    };
    let phases: Map<String, Value> = Phase::ALL
        .into_iter()
        .map(|phase| (format!("{phase:?}").to_lowercase(), json!(median(&|t| t.ms(phase)))))
        .collect();
    let share = median(&|t| 100.0 * t.overhead() / t.total());
    json!({
        "model": model.rsplit('/').next(), "rows": rows, "context": context,
        "total": median(&Times::total), "phases": phases, "overhead_percent": share,
        "regions": median(&|t| t.regions() as f64), "region_us": median(&Times::region_us),
    })
}
