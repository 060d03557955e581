//! Letters as grey values.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, RasterizedChar, get_raster, get_raster_width};

/// A size of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Small,
    Large,
}

impl Size {
    fn raster(self) -> RasterHeight {
        match self {
            Self::Small => RasterHeight::Size16,
            Self::Large => RasterHeight::Size20,
        }
    }

    /// The height of a line in pixels.
    pub(super) fn height(self) -> usize {
        self.raster().val()
    }

    /// The width of a text in pixels.
    pub(super) fn width(self, text: &str) -> usize {
        letters(text).count() * get_raster_width(FontWeight::Regular, self.raster())
    }

    /// The letter of a character.
    pub(super) fn letter(self, c: char) -> Option<RasterizedChar> {
        get_raster(c, FontWeight::Regular, self.raster())
    }
}

/// The characters of a text that the font has. Others are replaced by similar ones.
pub(super) fn letters(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|c| match c {
        '⁻' | '−' | '–' => '-',
        '⁰' => '0',
        '⁴'..='⁹' => char::from_u32('4' as u32 + (c as u32 - '⁴' as u32)).unwrap_or('?'),
        '…' => '~',
        c if c.is_control() => ' ',
        c if Size::Small.letter(c).is_some() => c,
        _ => '?',
    })
}
