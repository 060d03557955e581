//! [`Colormap`]: colors of a range of values.

use colorous::Gradient;

/// A color: red, green, blue.
pub type Rgb = [u8; 3];

/// A sequence of colors for values from low to high.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are known")]
pub enum Colormap {
    #[default]
    Viridis,
    Plasma,
    Inferno,
    Magma,
    Cividis,
    Turbo,
    Greys,
    Blues,
    /// Blue, white, red: for values around zero.
    Coolwarm,
}

impl Colormap {
    /// All color maps.
    pub const ALL: [Self; 9] = [
        Self::Viridis,
        Self::Plasma,
        Self::Inferno,
        Self::Magma,
        Self::Cividis,
        Self::Turbo,
        Self::Greys,
        Self::Blues,
        Self::Coolwarm,
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viridis => "viridis",
            Self::Plasma => "plasma",
            Self::Inferno => "inferno",
            Self::Magma => "magma",
            Self::Cividis => "cividis",
            Self::Turbo => "turbo",
            Self::Greys => "greys",
            Self::Blues => "blues",
            Self::Coolwarm => "coolwarm",
        }
    }

    /// The color of a fraction, from 0 to 1.
    pub fn color(self, fraction: f64) -> Rgb {
        let fraction = fraction.clamp(0.0, 1.0);
        let (gradient, fraction): (Gradient, f64) = match self {
            Self::Viridis => (colorous::VIRIDIS, fraction),
            Self::Plasma => (colorous::PLASMA, fraction),
            Self::Inferno => (colorous::INFERNO, fraction),
            Self::Magma => (colorous::MAGMA, fraction),
            Self::Cividis => (colorous::CIVIDIS, fraction),
            Self::Turbo => (colorous::TURBO, fraction),
            Self::Greys => (colorous::GREYS, fraction),
            Self::Blues => (colorous::BLUES, fraction),
            Self::Coolwarm => (colorous::RED_BLUE, 1.0 - fraction),
        };
        let color = gradient.eval_continuous(fraction);
        [color.r, color.g, color.b]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_go_from_low_to_high() {
        assert_eq!(Colormap::Viridis.color(0.0), [68, 1, 84]);
        assert_eq!(Colormap::Viridis.color(7.0), Colormap::Viridis.color(1.0));
        let [red, _, blue] = Colormap::Coolwarm.color(0.0);
        assert!(blue > red);
        for map in Colormap::ALL {
            assert_ne!(map.color(0.0), map.color(1.0), "{}", map.name());
        }
    }
}
