//! How the panels of a region are cut into tiles.

use std::ops::Range;

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

/// Cuts products, given as (panels, bytes of a panel), into tiles that shrink towards the end: a
/// thread claims at most half of its share of what is left, so few claims are made and all threads
/// end together. With many rows a panel is work enough for a tile.
pub(super) fn plan(
    products: impl Iterator<Item = (usize, usize)> + Clone,
    threads: usize,
    rows: usize,
) -> Vec<Tile> {
    let least = LEAST / rows.max(1);
    let mut left: usize = products.clone().map(|(panels, bytes)| panels * bytes).sum();
    let mut tiles = Vec::new();
    for (product, (panels, bytes)) in products.enumerate() {
        let mut start = 0;
        while start < panels {
            let target = (left / (2 * threads)).clamp(least, MOST);
            let end = panels.min(start + (target / bytes.max(1)).max(1));
            left -= (end - start) * bytes;
            tiles.push(Tile { product, panels: start..end });
            start = end;
        }
    }
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_panel_once_and_in_order() {
        for products in [vec![], vec![(1, 5)], vec![(96, 14_000), (16, 14_000), (17, 20_000)]] {
            for (threads, rows) in [(1, 1), (2, 8), (64, 100)] {
                let tiles = plan(products.iter().copied(), threads, rows);
                for (product, (panels, _)) in products.iter().enumerate() {
                    let own = tiles.iter().filter(|tile| tile.product == product);
                    let all: Vec<usize> = own.flat_map(|tile| tile.panels.clone()).collect();
                    assert_eq!(all, (0..*panels).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn tiles_shrink_to_the_least_size() {
        let tiles = plan([(600, 10_000)].into_iter(), 2, 1);
        let sizes: Vec<usize> = tiles.iter().map(|tile| tile.panels.len()).collect();
        assert_eq!(sizes[0], 52);
        assert!(sizes.is_sorted_by(|a, b| a >= b));
        assert_eq!(sizes.last(), Some(&1));
        assert!(sizes.len() < 40, "{sizes:?}");
    }
}
