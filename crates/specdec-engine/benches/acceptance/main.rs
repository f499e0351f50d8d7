//! How many drafted tokens each verifier accepts on a pair of models, and how many any exact rule
//! could.
//!
//! `cargo bench -p specdec-engine --bench acceptance -- TARGET.gguf DRAFT.gguf PROMPT.txt ..`; every
//! prompt is one turn of a chat. From the environment: `TOKENS` (100) of an answer, `SAMPLES` (2)
//! of every prompt, `NODES` (4) of a chain, twice as many of a tree of two a level.
//!
//! `tokens per step` is 1 + accepted / steps over the steps that drafted, behind it its 90 %
//! interval (bootstrap over answers), then the share of drafts of depth 1, 2, .. that were accepted.
//! The bounds are computed from the laws of both models along the answers of `standard`.

mod answers;
mod bounds;
mod interval;

use answers::{Answer, Pair, Shape};
use interval::Interval;
use specdec_core::{Method, SpecStats};

type Failure = Box<dyn std::error::Error>;

const TEMPERATURES: [f64; 2] = [0.7, 1.0];

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [target, draft, prompts @ ..] = args.as_slice() else {
        println!("acceptance: name a target, a draft and prompts to see what verifiers accept");
        return Ok(());
    };
    let nodes = number("NODES", 4)?;
    let chain = Shape { nodes, branching: 1 };
    let tree = Shape { nodes: 2 * nodes, branching: 2 };
    let pair =
        Pair { target: target.as_ref(), draft: draft.as_ref(), tokens: number("TOKENS", 100)? };
    let asked = pair.prompts(prompts)?;
    let asked = vec![asked; number("SAMPLES", 2)?].concat();
    let mut texts = Vec::new();
    for (name, method, shape) in [
        ("standard", Method::Standard, chain),
        ("block", Method::Traversal, chain),
        ("coupled", Method::Coupled, chain),
        ("standard", Method::Standard, tree),
        ("traversal", Method::Traversal, tree),
        ("coupled", Method::Coupled, tree),
    ] {
        let engine = pair.engine(method, shape)?;
        for temperature in TEMPERATURES {
            let answers = pair.ask(&engine, &asked, temperature)?;
            println!("T {temperature:.1}  {name:10} {shape:16} {}", summary(&answers));
            if texts.len() < TEMPERATURES.len() {
                texts.push(answers);
            }
        }
    }
    for (temperature, answers) in TEMPERATURES.iter().zip(&texts) {
        println!("T {temperature:.1}  at one place of these texts, and over a chain of {nodes}:");
        for (name, found) in bounds::report(&pair, answers, *temperature, nodes)? {
            println!("       {name:44} {found}");
        }
    }
    Ok(())
}

fn number(name: &str, default: usize) -> Result<usize, Failure> {
    Ok(std::env::var(name).map_or(Ok(default), |text| text.parse())?)
}

/// Steps, tokens per step and acceptance by depth.
fn summary(answers: &[Answer]) -> String {
    let mut all = SpecStats::default();
    for answer in answers {
        all.merge(&answer.stats);
    }
    let emitted = |stats: &SpecStats| {
        let steps = stats.num_spec_steps as f64;
        (steps + stats.num_accepted_draft_tokens as f64, steps)
    };
    let mean = Interval::of(&answers.iter().map(|one| emitted(&one.stats)).collect::<Vec<_>>());
    let depths = all.accepted_per_position.iter().zip(&all.drafted_per_position);
    let shares: Vec<String> = depths
        .filter(|(_, drafted)| **drafted > 0)
        .map(|(accepted, drafted)| format!("{:.3}", *accepted as f64 / *drafted as f64))
        .collect();
    format!("{:5} steps  {mean} tokens per step  {}", all.num_spec_steps, shares.join(" "))
}
