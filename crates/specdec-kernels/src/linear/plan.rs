//! How the panels of a region are cut into tiles.

use std::ops::Range;

use crate::pool::part;

/// Bytes of weights below which claiming a tile costs too much beside reading it.
const LEAST: usize = 16 << 10;
/// Bytes beyond which a tile wins nothing, and a thread that is held up holds up the others longer.
const MOST: usize = 512 << 10;

/// Some panels of one product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) product: usize,
    pub(super) panels: Range<usize>,
}

/// The tiles of a region.
pub(super) struct Plan {
    /// Those of the first thread, then those of the second, and so on.
    pub(super) tiles: Vec<Tile>,
    /// Where the tiles of each thread end.
    pub(super) ends: Vec<usize>,
}

/// Cuts products, given as (panels, bytes of a panel). Every thread gets as large a part of each of
/// them, in the order of threads, in tiles that shrink towards the end: one takes at most half of
/// what its thread has left, so few claims are made, and there is something to take over for
/// threads that are done. With many rows a panel is work enough for a tile.
pub(super) fn plan(
    products: &(impl Iterator<Item = (usize, usize)> + Clone),
    threads: usize,
    rows: usize,
) -> Plan {
    let least = LEAST / rows.max(1);
    let mut plan = Plan { tiles: Vec::new(), ends: Vec::with_capacity(threads) };
    for thread in 0..threads {
        let own = |panels: usize| part(panels, threads, thread);
        let bytes_of = |(panels, bytes): (usize, usize)| own(panels).len() * bytes;
        let mut left: usize = products.clone().map(bytes_of).sum();
        for (product, (panels, bytes)) in products.clone().enumerate() {
            let Range { mut start, end: last } = own(panels);
            while start < last {
                let target = (left / 2).clamp(least, MOST);
                let end = last.min(start + (target / bytes.max(1)).max(1));
                left -= (end - start) * bytes;
                plan.tiles.push(Tile { product, panels: start..end });
                start = end;
            }
        }
        plan.ends.push(plan.tiles.len());
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRODUCTS: [&[(usize, usize)]; 3] =
        [&[], &[(1, 5)], &[(96, 14_000), (16, 14_000), (17, 20_000)]];

    #[test]
    fn tiles_cover_every_panel_once_and_in_order() {
        for products in PRODUCTS {
            for (threads, rows) in [(1, 1), (2, 8), (64, 100)] {
                let plan = plan(&products.iter().copied(), threads, rows);
                for (product, (panels, _)) in products.iter().enumerate() {
                    let own = plan.tiles.iter().filter(|tile| tile.product == product);
                    let all: Vec<usize> = own.flat_map(|tile| tile.panels.clone()).collect();
                    assert_eq!(all, (0..*panels).collect::<Vec<_>>());
                }
                assert_eq!((plan.ends.len(), plan.ends.last()), (threads, Some(&plan.tiles.len())));
            }
        }
    }

    #[test]
    fn threads_get_the_same_part_of_every_product() {
        for (threads, rows) in [(2, 1), (3, 16)] {
            let plan = plan(&PRODUCTS[2].iter().copied(), threads, rows);
            let mut start = 0;
            for (thread, end) in plan.ends.iter().enumerate() {
                let tiles = &plan.tiles[start..*end];
                for (product, (panels, _)) in PRODUCTS[2].iter().enumerate() {
                    let own = tiles.iter().filter(|tile| tile.product == product);
                    let all: Vec<usize> = own.flat_map(|tile| tile.panels.clone()).collect();
                    assert_eq!(all, part(*panels, threads, thread).collect::<Vec<_>>());
                }
                start = *end;
            }
        }
    }

    #[test]
    fn tiles_of_a_thread_shrink_to_the_least_size() {
        let plan = plan(&[(600, 10_000)].into_iter(), 2, 1);
        for tiles in [&plan.tiles[..plan.ends[0]], &plan.tiles[plan.ends[0]..]] {
            let sizes: Vec<usize> = tiles.iter().map(|tile| tile.panels.len()).collect();
            assert_eq!(sizes[0], 52);
            assert!(sizes.is_sorted_by(|a, b| a >= b));
            assert_eq!(sizes.last(), Some(&1));
            assert!(sizes.len() < 20, "{sizes:?}");
        }
    }
}
