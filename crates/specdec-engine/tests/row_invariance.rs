//! Law L2 at the decoder: a row's logits and its cache entry are the same bits alone, in a batch, in
//! a tree and in prefill chunks, for every thread count, SIMD level and cache type.

mod runs;

use runs::{decoder, recipes, tokens};
use specdec_engine::cache::SeqCache;
use specdec_engine::model::{decoder::Decoder, rows::Row};
use specdec_kernels::{KvType, Level};
use specdec_testkit::gguf::TinyModel;

/// Crosses the border of the first page, so blocks of attention are cut.
const LEN: usize = 70;

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn row(token: u32, seq: usize, parent: Option<usize>) -> Row {
    Row { token, seq, parent, logits: true, hidden: false }
}

/// Logits of every position and the final cache, fed in chains of `chunk` rows.
fn feed(decoder: &mut Decoder, text: &[u32], chunk: usize) -> (Vec<Vec<u32>>, Vec<Vec<u8>>) {
    let mut cache = SeqCache::default();
    let mut logits = Vec::new();
    for part in text.chunks(chunk) {
        let rows: Vec<Row> =
            part.iter().enumerate().map(|(i, &token)| row(token, 0, i.checked_sub(1))).collect();
        decoder.forward(&mut [&mut cache], &rows).unwrap();
        logits.extend((0..rows.len()).map(|i| bits(decoder.logits(i).unwrap())));
        decoder.commit(&mut cache, &(0..rows.len()).collect::<Vec<_>>()).unwrap();
    }
    let stored = decoder.committed_bytes(&cache).unwrap();
    decoder.release(&mut cache);
    (logits, stored)
}

fn make(model: &TinyModel, kv_type: KvType, threads: usize, level: Option<Level>) -> Decoder {
    decoder(model, |options| {
        options.kv_type = kv_type;
        options.num_threads = Some(threads);
        options.level = level;
        options.max_num_seqs = 16;
        options.prefill_rows = LEN;
        options.max_num_seqs = 128;
        options.max_model_len = Some(128);
    })
}

#[test]
fn chunks_threads_and_levels_do_not_change_a_bit() {
    for (name, model) in recipes() {
        let text = tokens(1, LEN, model.vocab);
        for kv_type in [KvType::F16, KvType::F32] {
            let plain = feed(&mut make(&model, kv_type, 1, None), &text, 1);
            for threads in [1, 2] {
                for level in Level::available() {
                    let mut decoder = make(&model, kv_type, threads, Some(level));
                    for chunk in [1, 7, 64, LEN] {
                        let other = feed(&mut decoder, &text, chunk);
                        let what = format!("{name} {kv_type:?} {threads} {level} chunk {chunk}");
                        assert!(plain.0 == other.0, "logits: {what}");
                        assert!(plain.1 == other.1, "cache: {what}");
                    }
                }
            }
        }
    }
}

#[test]
fn batch_mates_do_not_change_a_bit() {
    for (name, model) in recipes() {
        let mut decoder = make(&model, KvType::F16, 2, None);
        let texts: Vec<_> = (0..16).map(|i| tokens(i, 9 + i as usize, model.vocab)).collect();
        let alone: Vec<_> = texts.iter().map(|text| feed(&mut decoder, text, 1)).collect();
        for batch in [2, 5, 16] {
            let mut caches: Vec<SeqCache> = (0..batch).map(|_| SeqCache::default()).collect();
            for position in 0..24 {
                let present: Vec<usize> =
                    (0..batch).filter(|&seq| position < texts[seq].len()).collect();
                let rows: Vec<Row> =
                    present.iter().map(|&seq| row(texts[seq][position], seq, None)).collect();
                let mut borrowed: Vec<&mut SeqCache> = caches.iter_mut().collect();
                decoder.forward(&mut borrowed, &rows).unwrap();
                for (i, &seq) in present.iter().enumerate() {
                    let logits = bits(decoder.logits(i).unwrap());
                    assert!(logits == alone[seq].0[position], "{name} batch {batch} seq {seq}");
                    decoder.commit(&mut caches[seq], &[0]).unwrap();
                }
            }
            for cache in &mut caches {
                decoder.release(cache);
            }
        }
    }
}

/// A tree of 8 nodes behind row 0; parents by row.
const PARENTS: [Option<usize>; 9] =
    [None, Some(0), Some(0), Some(1), Some(2), Some(2), Some(4), Some(0), Some(7)];

#[test]
fn a_tree_row_equals_its_path_run_alone_and_commits_to_the_same_cache() {
    for (name, model) in recipes() {
        for kv_type in [KvType::F16, KvType::F32] {
            let mut decoder = make(&model, kv_type, 2, None);
            // 62 committed positions: the tree lies across the border of the page.
            let prompt = tokens(3, 62, model.vocab);
            let nodes = tokens(4, PARENTS.len(), model.vocab);
            for leaf in 0..PARENTS.len() {
                let mut path = vec![leaf];
                while let Some(parent) = PARENTS[*path.last().unwrap()] {
                    path.push(parent);
                }
                path.reverse();
                let mut text = prompt.clone();
                text.extend(path.iter().map(|&node| nodes[node]));
                let alone = feed(&mut decoder, &text, 1);

                let mut cache = SeqCache::default();
                let chain: Vec<Row> =
                    (0..prompt.len()).map(|i| row(prompt[i], 0, i.checked_sub(1))).collect();
                decoder.forward(&mut [&mut cache], &chain).unwrap();
                decoder.commit(&mut cache, &(0..prompt.len()).collect::<Vec<_>>()).unwrap();
                let tree: Vec<Row> =
                    (0..nodes.len()).map(|i| row(nodes[i], 0, PARENTS[i])).collect();
                decoder.forward(&mut [&mut cache], &tree).unwrap();
                for (depth, &node) in path.iter().enumerate() {
                    let logits = bits(decoder.logits(node).unwrap());
                    assert!(logits == alone.0[prompt.len() + depth], "{name} node {node}");
                }
                decoder.commit(&mut cache, &path).unwrap();
                assert!(decoder.committed_bytes(&cache).unwrap() == alone.1, "{name} {leaf}");
                decoder.release(&mut cache);
            }
        }
    }
}

#[test]
fn hidden_states_come_for_the_rows_and_layers_that_ask() {
    let model = TinyModel::llama();
    let mut decoder = decoder(&model, |options| options.captures = vec![0, 1, model.layers]);
    let text = tokens(5, 6, model.vocab);
    let mut cache = SeqCache::default();
    let rows: Vec<Row> = (0..6)
        .map(|i| Row { logits: i == 5, hidden: i % 2 == 1, ..row(text[i], 0, i.checked_sub(1)) })
        .collect();
    decoder.forward(&mut [&mut cache], &rows).unwrap();
    assert!(decoder.logits(4).is_none() && decoder.logits(5).is_some());
    for layer in [0, 1, model.layers] {
        assert!(decoder.hidden(layer, 0).is_none());
        let states: Vec<_> =
            [1, 3, 5].iter().map(|&i| bits(decoder.hidden(layer, i).unwrap())).collect();
        assert!(states[0] != states[1] && states[1] != states[2]);
        assert_eq!(states[0].len(), model.hidden);
    }
    assert!(decoder.hidden(model.layers - 1, 1).is_none() || model.layers == 2);
}
