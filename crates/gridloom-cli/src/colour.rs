//! Numbers as colours and shades.

/// Characters from empty to full, for terminals without colours.
const SHADES: &[u8] = b" .:-=+*#%@";

/// Returns a colour from dark blue through purple, red and orange to pale yellow. The scale is
/// ordered by lightness, so that it is readable without colour vision.
pub(crate) fn colour(value: f32) -> [u8; 3] {
    const STOPS: [[f32; 3]; 5] = [
        [13.0, 22.0, 58.0],
        [84.0, 24.0, 110.0],
        [187.0, 55.0, 84.0],
        [249.0, 142.0, 9.0],
        [252.0, 255.0, 190.0],
    ];
    let place = within(value) * (STOPS.len() - 1) as f32;
    let low = (place as usize).min(STOPS.len() - 2);
    let mix = place - low as f32;
    std::array::from_fn(|channel| (STOPS[low][channel] * (1.0 - mix) + STOPS[low + 1][channel] * mix) as u8)
}

/// Returns a character that is as full as the value.
pub(crate) fn shade(value: f32) -> char {
    SHADES[(within(value) * (SHADES.len() - 1) as f32).round() as usize] as char
}

/// Returns a value between 0 and 1. What is not a number is 0.
fn within(value: f32) -> f32 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_end_at_the_first_and_last_stop() {
        assert_eq!(colour(0.0), [13, 22, 58]);
        assert_eq!(colour(1.0), [252, 255, 190]);
    }

    #[test]
    fn values_out_of_range_take_the_nearest_colour_and_shade() {
        assert_eq!((colour(-5.0), colour(9.0)), (colour(0.0), colour(1.0)));
        assert_eq!(colour(f32::NAN), colour(0.0));
        assert_eq!((shade(-1.0), shade(0.0), shade(2.0), shade(f32::NAN)), (' ', ' ', '@', ' '));
    }
}
