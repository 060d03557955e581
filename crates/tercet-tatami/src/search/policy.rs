//! Tiered merge policy.

/// The size of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSize {
    /// Documents, including deleted ones.
    pub documents: u64,
    /// Live documents.
    pub live: u64,
}

/// Merge policy: merges segments of similar size, so that each document is rewritten only a few times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergePolicy {
    /// Minimum number of segments in a merge.
    pub segments_per_tier: usize,
    /// The maximum number of segments in a merge.
    pub max_merge_at_once: usize,
    /// Smaller segments are treated as this size.
    pub floor_documents: u64,
    /// The maximum number of live documents in a merged segment.
    pub max_documents: u64,
    /// A segment with this percentage of deleted documents is rewritten.
    pub deleted_percent: u64,
}

impl Default for MergePolicy {
    fn default() -> Self {
        Self {
            segments_per_tier: 10,
            max_merge_at_once: 10,
            floor_documents: 2000,
            max_documents: 50_000_000,
            deleted_percent: 33,
        }
    }
}

impl MergePolicy {
    /// The positions of the segments to merge next; none if no merge is needed.
    pub fn choose(&self, segments: &[SegmentSize]) -> Option<Vec<usize>> {
        let too_dead = |segment: &SegmentSize| {
            let deleted = segment.documents.saturating_sub(segment.live);
            deleted > 0
                && deleted.saturating_mul(100) >= segment.documents.saturating_mul(self.deleted_percent)
        };
        if let Some(alone) = segments.iter().position(too_dead) {
            return Some(vec![alone]);
        }
        if segments.len() < self.segments_per_tier {
            return None;
        }
        let mut order: Vec<usize> = (0..segments.len()).collect();
        order.sort_by_key(|at| segments[*at].live.max(self.floor_documents));
        let mut batch = Vec::new();
        let mut sum = 0u64;
        for at in order {
            sum = sum.saturating_add(segments[at].live);
            if batch.len() == self.max_merge_at_once || sum > self.max_documents {
                break;
            }
            batch.push(at);
        }
        (batch.len() >= 2).then_some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(live: &[u64]) -> Vec<SegmentSize> {
        live.iter().map(|live| SegmentSize { documents: *live, live: *live }).collect()
    }

    #[test]
    fn few_segments_are_not_merged() {
        let policy = MergePolicy::default();
        assert_eq!(policy.choose(&[]), None);
        assert_eq!(policy.choose(&sizes(&[1; 9])), None);
        assert_eq!(policy.choose(&sizes(&[0])), None);
    }

    #[test]
    fn ten_segments_of_similar_size_are_merged() {
        let policy = MergePolicy::default();
        let mut live = vec![9_000_000];
        live.extend([5, 4, 3, 2, 1, 1, 1, 1, 1, 1]);
        // Small segments are treated alike, so their order is kept.
        assert_eq!(policy.choose(&sizes(&live)), Some((1..11).collect()));
        let many = sizes(&[3000; 25]);
        assert_eq!(policy.choose(&many), Some((0..10).collect()));
    }

    #[test]
    fn merges_respect_the_maximum_size() {
        let policy = MergePolicy::default();
        let mut live = vec![20_000_000; 10];
        assert_eq!(policy.choose(&sizes(&live)), Some(vec![0, 1]));
        live.fill(30_000_000);
        assert_eq!(policy.choose(&sizes(&live)), None);
    }

    #[test]
    fn segments_with_many_deletes_are_rewritten() {
        let policy = MergePolicy::default();
        let mut segments = sizes(&[100, 100, 100]);
        segments[1].live = 68;
        assert_eq!(policy.choose(&segments), None);
        segments[1].live = 67;
        assert_eq!(policy.choose(&segments), Some(vec![1]));
    }
}
