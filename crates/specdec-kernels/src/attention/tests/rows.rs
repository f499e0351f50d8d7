//! A row has one result, whatever else is computed and wherever its keys lie.

use super::*;
use crate::attention::plan::{Piece, Plan};
use crate::testing::{bits, cpus};

/// Rows at the end of a text that the tests look at.
const LAST: usize = 6;

/// Bits of the last rows, each for all `windows`.
type Rows = Vec<[Vec<u32>; 4]>;

/// Where a window may start, for a row at position p.
fn windows(p: usize) -> [u32; 4] {
    [0, p / 2, p.saturating_sub(3), p].map(|from| from as u32)
}

/// A store with all positions before the last rows, pages in order, and their number.
fn prompted(cpu: &Cpu, text: &Text, len: usize) -> (KvStore, usize) {
    let mut kv = text.model.store(cpu);
    let first = len.saturating_sub(LAST);
    let prompt: Vec<u32> = (0..first as u32).collect();
    text.put(cpu, &mut kv, &prompt, &prompt);
    (kv, first)
}

/// Slots here and there, for the nodes of a tree.
fn scattered(nodes: usize) -> Vec<u32> {
    (0..nodes as u32).map(|i| 500 - i * 23 % 64 - i % 3 * 64).collect()
}

/// The rows one by one as plain decoding computes them: positions in order, pages in order.
fn plain(cpu: &Cpu, text: &Text, len: usize) -> Rows {
    let (mut kv, first) = prompted(cpu, text, len);
    let mut rows = Vec::new();
    for p in first..len {
        let slot = [p as u32];
        let q = text.put(cpu, &mut kv, &slot, &slot);
        let span = |from| Span { pages: &[0, 1, 2], linear: p as u32 + 1, extra: &[], from };
        rows.push(windows(p).map(|from| bits(&text.model.attend(cpu, &kv, &q, &[span(from)])[0])));
    }
    rows
}

/// All spans at once, for each window; every `step`-th row counts.
fn together(
    cpu: &Cpu,
    text: &Text,
    kv: &KvStore,
    q: &[f32],
    spans: &[Span<'_>],
    step: usize,
) -> Rows {
    let mut rows = vec![<[Vec<u32>; 4]>::default(); spans.len().div_ceil(step)];
    for window in 0..4 {
        let from = |span: &Span<'_>| windows(span.end() - 1)[window];
        let spans: Vec<Span<'_>> = spans.iter().map(|s| Span { from: from(s), ..*s }).collect();
        let found = text.model.attend(cpu, kv, q, &spans);
        for (row, found) in rows.iter_mut().zip(found.iter().step_by(step)) {
            row[window] = bits(found);
        }
    }
    rows
}

/// The whole text as one chunk, its pages out of order.
fn chunk(cpu: &Cpu, text: &Text, len: usize) -> Rows {
    let mut kv = text.model.store(cpu);
    let positions: Vec<u32> = (0..len as u32).collect();
    let pages = [5, 0, 7];
    let slots: Vec<u32> = positions.iter().map(|p| pages[*p as usize / 64] * 64 + p % 64).collect();
    let q = text.put(cpu, &mut kv, &positions, &slots);
    let first = len.saturating_sub(LAST);
    let span = |p| Span { pages: &pages, linear: p as u32 + 1, extra: &[], from: 0 };
    let spans: Vec<Span<'_>> = (first..len).map(span).collect();
    together(cpu, text, &kv, &q[first * text.model.heads * text.model.d..], &spans, 1)
}

/// The last rows as a path of a tree whose nodes lie anywhere, between the nodes of another path.
fn tree(cpu: &Cpu, text: &Text, len: usize) -> Rows {
    let (mut kv, first) = prompted(cpu, text, len);
    let other = Text::new(text.model, len, 77);
    let slots = scattered(2 * LAST);
    let (mut q, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for (p, slots) in (first as u32..len as u32).zip(slots.chunks(2)) {
        ours.push(slots[0]);
        theirs.push(slots[1]);
        q.extend(text.put(cpu, &mut kv, &[p], &[slots[0]]));
        q.extend(other.put(cpu, &mut kv, &[p], &[slots[1]]));
    }
    let paths = (1..=ours.len()).flat_map(|n| [&ours[..n], &theirs[..n]]);
    let span = |extra| Span { pages: &[0, 1, 2], linear: first as u32, extra, from: 0 };
    let spans: Vec<Span<'_>> = paths.map(span).collect();
    together(cpu, text, &kv, &q, &spans, 2)
}

/// The last rows as a path of a tree, each beside the one before it, so that they share what is put
/// together; but before the last one stands another in its place.
fn path(cpu: &Cpu, text: &Text, len: usize) -> Rows {
    let (mut kv, first) = prompted(cpu, text, len);
    let other = Text::new(text.model, len, 77);
    let last = len - 1 - first;
    let slots = scattered(LAST);
    let (mut q, mut paths) = (Vec::new(), Vec::new());
    for i in 0..=last {
        let p = (first + i) as u32;
        if i == last {
            q.extend(other.put(cpu, &mut kv, &[p], &[350]));
            paths.push([&slots[..i], &[350]].concat());
        }
        q.extend(text.put(cpu, &mut kv, &[p], &slots[i..=i]));
        paths.push(slots[..=i].to_vec());
    }
    let span = |extra| Span { pages: &[0, 1, 2], linear: first as u32, extra, from: 0 };
    let spans: Vec<Span<'_>> = paths.iter().map(|path| span(path)).collect();
    let mut rows = together(cpu, text, &kv, &q, &spans, 1);
    rows.remove(last);
    rows
}

#[test]
fn a_row_has_the_same_bits_alone_in_a_chunk_and_in_a_tree() {
    let cpus = cpus();
    for model in models() {
        for len in [1, 2, 63, 64, 65, 129] {
            let text = Text::new(model, len, len as u64);
            let expected = plain(&cpus[0], &text, len);
            for cpu in &cpus {
                let ways =
                    [("plain", plain as Way), ("chunk", chunk), ("tree", tree), ("path", path)];
                for (name, way) in ways {
                    let same = way(cpu, &text, len) == expected;
                    assert!(same, "{name} {model:?} {len} {} {}", cpu.level, cpu.pool.threads());
                }
            }
        }
    }
}

/// A way to compute the last rows of a text.
type Way = fn(&Cpu, &Text, len: usize) -> Rows;

#[test]
fn the_bits_are_finite_and_differ_between_rows() {
    // Guards the test above: NaN read from an unused slot would make all rows equal.
    let model = Model { heads: 6, kv_heads: 2, d: 64, kv_type: KvType::F16 };
    let rows = plain(&cpus()[0], &Text::new(model, 65, 65), 65);
    let finite = |bits: &u32| f32::from_bits(*bits).is_finite();
    assert!(rows.iter().flatten().flatten().all(finite));
    assert!(rows.windows(2).all(|pair| pair[0][0] != pair[1][0]));
    assert!(rows[5].windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn a_row_has_the_same_bits_in_a_batch_of_any_size() {
    let model = Model { heads: 6, kv_heads: 2, d: 64, kv_type: KvType::F16 };
    let len = 100;
    let texts = [1, 2].map(|seed| Text::new(model, len, seed));
    for cpu in cpus() {
        let mut kv = model.store(&cpu);
        let positions: Vec<u32> = (0..len as u32).collect();
        let pages = [[0, 3], [4, 1]];
        let mut q = Vec::new();
        for (text, pages) in texts.iter().zip(&pages) {
            let slot = |p: &u32| pages[*p as usize / 64] * 64 + p % 64;
            let slots: Vec<u32> = positions.iter().map(slot).collect();
            q.push(text.put(&cpu, &mut kv, &positions, &slots));
        }
        let width = model.heads * model.d;
        for rows in [1, 2, 3, 5, 16, 40] {
            let at = |i: usize| (i % 2, i * 37 % len);
            let spans: Vec<Span<'_>> = (0..rows)
                .map(at)
                .map(|(t, p)| Span { pages: &pages[t], linear: p as u32 + 1, extra: &[], from: 0 })
                .collect();
            let asked: Vec<f32> =
                (0..rows).map(at).flat_map(|(t, p)| q[t][p * width..][..width].to_vec()).collect();
            let together = model.attend(&cpu, &kv, &asked, &spans);
            for (i, row) in together.iter().enumerate() {
                let alone = model.attend(&cpu, &kv, &asked[i * width..][..width], &spans[i..=i]);
                assert_eq!(bits(row), bits(&alone[0]), "row {i} of {rows} {}", cpu.level);
            }
        }
    }
}

#[test]
fn pieces_cover_every_block_of_every_run_and_kv_head_once() {
    let (short, long) = ([0; 3], [0; 40]);
    let span = |pages, linear| Span { pages, linear, extra: &[], from: 0 };
    for (rows, group, threads, room) in
        [(1, 3, 2, 9999), (1, 3, 2, 5), (8, 6, 2, 9999), (300, 6, 4, 9999), (3, 200, 8, 99_999)]
    {
        let spans: Vec<Span<'_>> = (0..rows)
            .map(|i| if i % 5 == 4 { span(&short[..], 130) } else { span(&long[..], 2000 + i) })
            .collect();
        let plan = Plan::new(&spans, 3, group, threads, room);
        let rows: Vec<usize> = plan.runs.iter().flat_map(|run| run.rows.clone()).collect();
        assert_eq!(rows, (0..spans.len()).collect::<Vec<_>>());
        for (index, run) in plan.runs.iter().enumerate() {
            for kv_head in 0..3 {
                let own = |piece: &&Piece| piece.run == index && piece.kv_head == kv_head;
                let pieces = plan.pieces.iter().filter(own);
                let blocks: Vec<usize> = pieces.flat_map(|piece| piece.blocks.clone()).collect();
                assert_eq!(blocks, run.blocks.clone().collect::<Vec<_>>());
            }
        }
        let enough = plan.pieces.len() >= 2 * threads;
        assert!(enough || room == 5, "{} pieces for {threads} threads", plan.pieces.len());
    }
}

#[test]
fn shares_of_queries_keep_apart() {
    let pages = [0; 40];
    let spans: Vec<Span<'_>> =
        (0..7).map(|i| Span { pages: &pages, linear: 900 + i, extra: &[], from: 70 * i }).collect();
    for room in [99_999, 50] {
        let plan = Plan::new(&spans, 2, 3, 2, room);
        let mut seen = std::collections::BTreeSet::new();
        for run in &plan.runs {
            let blocks = if run.split { run.blocks.clone() } else { 0..1 };
            assert_eq!(run.split, room > 50);
            for (row, block) in run.rows.clone().flat_map(|r| blocks.clone().map(move |b| (r, b))) {
                for head in 0..6 {
                    let share = run.share(6, row, head, block);
                    assert!(share < room && seen.insert(share), "{row} {head} {block}");
                }
            }
        }
    }
}
