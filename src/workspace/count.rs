//! Sizes of texts as people count them.

/// Unicode scalar values.
pub fn chars(text: &str) -> u32 {
    text.chars().count().min(u32::MAX as usize) as u32
}

/// Runs of letters and digits; each Chinese, Japanese or Korean ideograph or kana counts by itself.
pub fn words(text: &str) -> u32 {
    let mut words = 0;
    let mut inside = false;
    for c in text.chars() {
        if is_cjk(c) {
            words += 1;
            inside = false;
        } else if c.is_alphanumeric() || (inside && (c == '\'' || c == '\u{2019}')) {
            words += u32::from(!inside);
            inside = true;
        } else {
            inside = false;
        }
    }
    words
}

fn is_cjk(c: char) -> bool {
    matches!(c as u32, 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3134f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinese_counts_by_character() {
        assert_eq!((chars("她推开门。"), words("她推开门。")), (5, 4));
        assert_eq!(words("It's a quiet scene, isn't it?"), 6);
        assert_eq!(words("第3章 rain"), 4);
    }
}
