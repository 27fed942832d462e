//! The candidate that a misspelt name most likely meant.

/// The nearest candidate by edit distance, where it is near enough to be worth naming.
pub fn nearest<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let name: Vec<char> = name.trim().to_lowercase().chars().take(128).collect();
    if name.is_empty() {
        return None;
    }
    let scored = candidates.iter().map(|candidate| (distance(&name, candidate), *candidate));
    let (best, candidate) = scored.min_by_key(|(score, candidate)| (*score, *candidate))?;
    let longest = name.len().max(candidate.chars().count());
    (best * 5 <= longest * 2).then_some(candidate)
}

fn distance(name: &[char], candidate: &str) -> usize {
    let other: Vec<char> = candidate.to_lowercase().chars().take(128).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in name.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (j, b) in other.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(0);
            let cost = (diagonal + usize::from(a != b)).min(above + 1).min(left + 1);
            diagonal = above;
            left = cost;
            if let Some(cell) = row.get_mut(j + 1) {
                *cell = cost;
            }
        }
        if let Some(cell) = row.first_mut() {
            *cell = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        assert_eq!(nearest("editr", &["editor", "scout"]), Some("editor"));
        assert_eq!(nearest("workspace_writefile", &["workspace_write_file", "workspace_commit"]), Some("workspace_write_file"));
        assert_eq!(nearest("constructor", &["editor", "scout"]), None);
        assert_eq!(nearest("润色员", &["润色", "校对"]), Some("润色"));
        assert_eq!(nearest("", &["a"]), None);
    }
}
