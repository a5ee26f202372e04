//! Ids and other pseudo-random choices, all a function of the seed.
//!
//! Same seed and same order of calls give the same ids. Rates are drawn from the seed and the call's own name, not from a shared
//! sequence, so that the order in which concurrent calls arrive does not change which of them fail.

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Base-62 digits that hold any 64-bit number.
const DIGITS: usize = 11;

#[derive(Debug)]
pub(crate) struct Ids {
    seed: u64,
    issued: u64,
}

impl Ids {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed: mix(seed), issued: 0 }
    }

    pub(crate) fn next(&mut self, prefix: &str) -> String {
        self.issued += 1;
        id(prefix, self.seed.wrapping_add(self.issued))
    }
}

/// An id such as `re_3...`: unique for each `number`, since `mix` is a bijection.
pub(crate) fn id(prefix: &str, number: u64) -> String {
    let first = mix(number);
    let mut text = String::with_capacity(prefix.len() + 1 + 2 * DIGITS);
    text.push_str(prefix);
    text.push('_');
    push_base62(&mut text, first);
    push_base62(&mut text, mix(first ^ 0x5851_f42d_4c95_7f2d));
    text
}

fn push_base62(text: &mut String, mut number: u64) {
    for _ in 0..DIGITS {
        text.push(char::from(ALPHABET[(number % 62) as usize]));
        number /= 62;
    }
}

/// The finaliser of SplitMix64: spreads every bit of the input over the output.
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A stable 64-bit hash of `text` under `seed` (FNV-1a, then mixed).
pub(crate) fn hash(seed: u64, text: &str) -> u64 {
    let mut bits = 0xcbf2_9ce4_8422_2325_u64 ^ mix(seed);
    for byte in text.as_bytes() {
        bits = (bits ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_repeat_with_the_seed_and_never_within_it() {
        let take = |seed| {
            (0..1000)
                .map({
                    let mut ids = Ids::new(seed);
                    move |_| ids.next("re")
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
        let mut sorted = take(7);
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), 1000);
    }
}
