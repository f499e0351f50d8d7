//! What goes where in memory, decided by arithmetic before anything is allocated.
//!
//! Weights and activations are what they are; what a budget leaves beyond them is cache. A draft
//! model takes its weights, its activations and, for every page of the model's cache, a page of its
//! own. So it costs sequences. It may be asked for all the same, but where the engine chooses, the
//! draft goes before a sequence does.

use crate::cache::PAGE;
use crate::draft::ModelDrafter;
use crate::error::EngineError;
use crate::model::decoder::Decoder;
use crate::ops::Memory;

/// Bytes that one model's cache may take when several whole contexts would take more and there is no
/// budget. The pages are touched only when used.
const KV_BYTES: usize = 2 << 30;

/// What one model needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// Bytes of packed weights.
    pub weights: usize,
    /// Bytes of the largest tensor in the file: it stands beside the weights while they are read.
    pub reading: usize,
    /// Bytes of activations, at most.
    pub activations: usize,
    /// Bytes of a page, all layers.
    pub page: usize,
    /// Pages of one whole context.
    pub context: usize,
    /// Pages of as many whole contexts as may run.
    pub most: usize,
}

impl Needs {
    fn fixed(&self) -> usize {
        self.weights + self.activations
    }

    /// Pages without a budget.
    fn unbounded(&self) -> usize {
        (KV_BYTES / self.page).max(self.context).min(self.most)
    }
}

/// Pages of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Pages of the model's.
    pub pages: usize,
    /// Pages of its draft's; none without a draft.
    pub draft: Option<usize>,
    /// Pages that the model's would have more without the draft.
    pub lost: usize,
}

impl Plan {
    /// The plan for a model, perhaps with a draft model. Where the choice is `automatic`, the draft
    /// is left out of a plan that could run fewer whole contexts with it.
    ///
    /// # Errors
    /// [`EngineError::Memory`] when the budget cannot hold one whole context.
    pub(crate) fn new(
        budget: Option<usize>,
        target: &Needs,
        draft: Option<&Needs>,
        automatic: bool,
    ) -> Result<Self, EngineError> {
        let Some(budget) = budget else {
            let draft = draft.map(Needs::unbounded);
            return Ok(Self { pages: target.unbounded(), draft, lost: 0 });
        };
        let alone = Self::within(budget, target, None);
        let both = draft.and_then(|draft| Self::within(budget, target, Some(draft)));
        let contexts = |plan: &Self| plan.pages / target.context;
        let plan = match (alone, both) {
            (Some(alone), Some(both)) if automatic && contexts(&both) < contexts(&alone) => alone,
            (Some(alone), Some(both)) => Self { lost: alone.pages - both.pages, ..both },
            (Some(alone), None) if draft.is_none() || automatic => alone,
            _ => return Err(too_small(budget, target, draft.filter(|_| !automatic))),
        };
        Ok(plan)
    }

    /// The most pages that fit: each of the model's with one of its draft's, as far as the draft has
    /// a use for it. None if not one whole context fits.
    fn within(budget: usize, target: &Needs, draft: Option<&Needs>) -> Option<Self> {
        let none = Needs::default();
        let beside = draft.unwrap_or(&none);
        let reading = target.reading.max(beside.reading);
        budget.checked_sub(target.weights + beside.weights + reading)?;
        let left = budget.checked_sub(target.fixed() + beside.fixed())?;
        // The model's first context comes before what a draft with a shorter one has room for.
        let spare = left.checked_sub(target.context * target.page)?;
        let shared = (left / (target.page + beside.page)).min(beside.most);
        let shared = shared.min(spare.checked_div(beside.page).unwrap_or(0));
        let pages = ((left - shared * beside.page) / target.page).min(target.most);
        let enough = pages >= target.context && shared >= beside.context;
        enough.then_some(Self { pages, draft: draft.map(|_| shared), lost: 0 })
    }
}

/// The least that would do, part by part.
fn too_small(budget: usize, target: &Needs, draft: Option<&Needs>) -> EngineError {
    let none = Needs::default();
    let beside = draft.unwrap_or(&none);
    let cache = target.context * target.page + beside.context * beside.page;
    let weights = target.weights + beside.weights;
    let activations = target.activations + beside.activations;
    let reading = weights + target.reading.max(beside.reading);
    EngineError::Memory {
        budget,
        needed: (weights + activations + cache).max(reading),
        weights,
        activations,
        cache,
        context: target.context * PAGE,
        advice: match draft {
            Some(_) => "raise the budget, lower max_model_len or leave the draft model out",
            None => "raise the budget or lower max_model_len",
        },
    }
}

/// Bytes by part, as they were allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// What all parts may take; `None`: no limit.
    pub budget: Option<usize>,
    /// The model.
    pub target: Memory,
    /// Its draft model; nothing without one.
    pub draft: Memory,
    /// Positions that the model's cache holds.
    pub kv_tokens: usize,
    /// Positions that the draft's cache holds.
    pub draft_kv_tokens: usize,
    /// Positions that the model's cache would hold more in its budget without the draft.
    pub kv_tokens_lost_to_draft: usize,
    /// Whether a draft model was left out for want of room.
    pub draft_left_out: bool,
}

impl MemoryReport {
    /// What `target` and `draft` hold by `plan`.
    pub(crate) fn new(
        budget: Option<usize>,
        plan: Plan,
        target: &Decoder,
        draft: Option<&ModelDrafter>,
    ) -> Self {
        let tokens = |decoder: &Decoder| decoder.pages().total() * PAGE;
        let draft = draft.map(ModelDrafter::decoder);
        Self {
            budget,
            target: target.memory(),
            draft: draft.map(Decoder::memory).unwrap_or_default(),
            kv_tokens: tokens(target),
            draft_kv_tokens: draft.map_or(0, tokens),
            kv_tokens_lost_to_draft: plan.lost * PAGE,
            draft_left_out: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contexts of 10 pages of 100 bytes, at most 4 of them; 6,000 bytes beside the cache.
    const TARGET: Needs =
        Needs { weights: 5000, reading: 2000, activations: 1000, page: 100, context: 10, most: 40 };
    /// 2,000 bytes beside a cache of 50 a page.
    const DRAFT: Needs =
        Needs { weights: 1500, reading: 100, activations: 500, page: 50, context: 10, most: 40 };

    fn plan(
        budget: usize,
        draft: Option<&Needs>,
        automatic: bool,
    ) -> Option<(usize, Option<usize>)> {
        let plan = Plan::new(Some(budget), &TARGET, draft, automatic).ok()?;
        Some((plan.pages, plan.draft))
    }

    #[test]
    fn what_weights_and_activations_leave_is_cache() {
        assert_eq!(plan(6999, None, false), None);
        assert_eq!(plan(7000, None, false), Some((10, None)));
        assert_eq!(plan(8250, None, false), Some((22, None)));
        assert_eq!(plan(1 << 40, None, false), Some((40, None)));
    }

    #[test]
    fn a_page_of_the_draft_goes_with_each_of_the_models() {
        assert_eq!(plan(9499, Some(&DRAFT), false), None);
        assert_eq!(plan(9500, Some(&DRAFT), false), Some((10, Some(10))));
        assert_eq!(plan(11_000, Some(&DRAFT), false), Some((20, Some(20))));
        // A draft with a shorter context has no use for as many, and the model takes the rest.
        let short = Needs { context: 2, most: 8, ..DRAFT };
        assert_eq!(plan(11_000, Some(&short), false), Some((26, Some(8))));
    }

    #[test]
    fn the_plan_says_what_the_draft_costs() {
        let lost = |budget, draft| Plan::new(Some(budget), &TARGET, draft, false).unwrap().lost;
        assert_eq!(lost(9500, Some(&DRAFT)), 35 - 10);
        // Both caches are as large as they can be of use.
        assert_eq!(lost(14_000, Some(&DRAFT)), 0);
        assert_eq!(lost(9500, None), 0);
        assert_eq!(Plan::new(None, &TARGET, Some(&DRAFT), false).unwrap().lost, 0);
    }

    #[test]
    fn an_automatic_draft_goes_before_a_sequence_does() {
        // Two contexts alone, one beside the draft.
        assert_eq!(plan(9500, Some(&DRAFT), true), Some((35, None)));
        // Four with it as without it.
        assert_eq!(plan(14_000, Some(&DRAFT), true), Some((40, Some(40))));
        assert_eq!(plan(7000, Some(&DRAFT), true), Some((10, None)));
        assert_eq!(plan(6999, Some(&DRAFT), true), None);
    }

    #[test]
    fn the_largest_tensor_is_read_beside_the_weights() {
        let target = Needs { reading: 4000, ..TARGET };
        let error = Plan::new(Some(8999), &target, None, false).unwrap_err();
        assert!(matches!(error, EngineError::Memory { budget: 8999, needed: 9000, .. }), "{error}");
        assert!(Plan::new(Some(9000), &target, None, false).is_ok());
    }

    #[test]
    fn what_the_error_says_is_needed_is_enough() {
        let short = Needs { context: 2, most: 8, ..DRAFT };
        for draft in [None, Some(&DRAFT), Some(&short)] {
            let error = Plan::new(Some(1), &TARGET, draft, false).unwrap_err();
            let EngineError::Memory { needed, .. } = error else { panic!("{error}") };
            assert!(plan(needed, draft, false).is_some());
            assert!(plan(needed - 1, draft, false).is_none());
        }
    }
}
