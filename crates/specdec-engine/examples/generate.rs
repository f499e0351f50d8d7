//! A Rust user in 40 lines: `generate MODEL PROMPT [ngram]`.

use specdec_core::Sampling;
use specdec_engine::load::Specials;
use specdec_engine::{Engine, EngineOptions, Event, SamplingParams, Speculation};
use std::io::Write;
use std::time::Duration;

const USAGE: &str = "usage: generate MODEL PROMPT [ngram]";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut options = EngineOptions::new(args.next().ok_or(USAGE)?);
    let prompt = args.next().ok_or(USAGE)?;
    options.speculation = args.next().map(|_| Speculation::default());
    let engine = Engine::load(&options, &mut |_, _| ())?;
    let tokenizer = engine.tokenizer();
    let ids = tokenizer.encode(&prompt, Specials::Parse, tokenizer.add_bos());
    let params = SamplingParams {
        sampling: Sampling::greedy(),
        max_tokens: 100,
        ..SamplingParams::default()
    };
    let handle = engine.submit(ids, params)?;
    loop {
        match handle.recv_timeout(Duration::from_millis(100))? {
            None => {}
            Some(Event::Chunk(chunk)) => {
                print!("{}", chunk.text);
                std::io::stdout().flush()?;
            }
            Some(Event::Done(chunk, end)) => {
                let metrics = &end.metrics;
                let seconds = metrics.generation_time.as_secs_f64();
                let speed = (metrics.num_generation_tokens - 1) as f64 / seconds;
                println!(
                    "{}\n{speed:.1} tokens/s, {:.2} tokens per drafted step",
                    chunk.text,
                    metrics.speculation.mean_acceptance_length()
                );
                return Ok(());
            }
            Some(Event::Failed(error)) => return Err(error.into()),
        }
    }
}
