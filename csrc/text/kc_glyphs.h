/* What is known of characters: whether a terminal shows them, and how wide. The library has no tables of Unicode: the
 * caller has them, and fills a page of 256 characters when one of them occurs. */
#ifndef KC_GLYPHS_H
#define KC_GLYPHS_H

#include <stddef.h>
#include <stdint.h>

enum {
    KC_GLYPH_COLUMNS = 3,   /* a mask: how many columns of a terminal it takes, 0 to 2 */
    KC_GLYPH_PRINTABLE = 4, /* neither a control nor a separator nor unassigned */
    KC_GLYPH_BLANK = 8,     /* printable, yet invisible */
    KC_GLYPH_WIDENS = 16,   /* takes one more column before U+FE0F, which asks for a picture */
};

enum { KC_GLYPH_PAGE = 256, KC_GLYPH_PAGES = 0x110000 / KC_GLYPH_PAGE };

typedef struct kc_glyphs {
    const uint8_t *pages[KC_GLYPH_PAGES]; /* a byte for each character; NULL: not filled yet */
} kc_glyphs;

#endif
