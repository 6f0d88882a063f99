#include <string.h>

#include "base/kc_utf8.h"
#include "check.h"

#define R "\xef\xbf\xbd"

TEST(utf8_repairs_as_java_does) {
    static const struct {
        const char *bytes, *repaired;
    } CASES[] = {
        {"", ""},
        {"plain", "plain"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"a\x80z", "a" R "z"},
        {"\xc3", R},
        {"\xe2\x82", R},
        {"\xe2\x82z", R "z"},
        {"\xf0\x9f\x98", R},
        {"\xed\xa0\x80", R},           /* a surrogate */
        {"\xc0\x80", R R},             /* overlong */
        {"\xf4\x90\x80\x80", R R R R}, /* beyond U+10FFFF */
        {"\xff\xfe", R R},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const uint8_t *s = (const uint8_t *)CASES[i].bytes;
        const size_t size = strlen(CASES[i].bytes), want = strlen(CASES[i].repaired);
        uint8_t out[64];
        CHECK_EQ(kc_utf8_repair(s, size, out), want);
        CHECK(memcmp(out, CASES[i].repaired, want) == 0);
        CHECK_EQ(kc_utf8_valid(s, size), strcmp(CASES[i].bytes, CASES[i].repaired) == 0);
        CHECK(kc_utf8_valid(out, want));
    }
}

/* Every sequence of one to four bytes from those that stand at a border: the well-formed ones are those of Unicode's
 * table 3-7, decoded here to the code point that they spell. */
static bool well_formed(const uint8_t *s, size_t size) {
    uint32_t c = s[0];
    if (size == 1) return c < 0x80;
    static const uint8_t LEADS[] = {0, 0, 0xc0, 0xe0, 0xf0};
    static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint32_t mask = size == 2 ? 0xe0 : size == 3 ? 0xf0 : 0xf8;
    if ((c & mask) != LEADS[size]) return false;
    c &= ~mask & 0xff;
    for (size_t i = 1; i < size; i++) {
        if ((s[i] & 0xc0) != 0x80) return false;
        c = c << 6 | (s[i] & 0x3f);
    }
    return c >= LEAST[size] && c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);
}

/* Whether the bytes fall into well-formed sequences. */
static bool text(const uint8_t *s, size_t size) {
    if (size == 0) return true;
    for (size_t n = 1; n <= size && n <= 4; n++) {
        if (well_formed(s, n)) return text(s + n, size - n);
    }
    return false;
}

TEST(utf8_is_what_unicode_says) {
    static const uint8_t EDGES[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
                                    0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
    enum { N = sizeof EDGES };
    uint8_t s[4], out[12];
    for (size_t i = 0; i < (size_t)N * N * N * N; i++) {
        for (size_t k = 0, rest = i; k < 4; k++, rest /= N) s[k] = EDGES[rest % N];
        for (size_t size = 1; size <= 4; size += 3) {
            CHECK_EQ(kc_utf8_valid(s, size), text(s, size));
            const size_t repaired = kc_utf8_repair(s, size, out);
            CHECK(text(out, repaired));
            if (text(s, size)) CHECK(repaired == size && memcmp(s, out, size) == 0);
        }
    }
}

/* Longer texts are looked at in words. */
TEST(utf8_bad_bytes_anywhere_in_long_text) {
    uint8_t s[40];
    for (size_t size = 0; size <= sizeof s; size++) {
        memset(s, 'x', sizeof s);
        CHECK(kc_utf8_valid(s, size));
        for (size_t at = 0; at < size; at++) {
            s[at] = 0x80;
            CHECK(!kc_utf8_valid(s, size));
            s[at] = 'x';
        }
    }
}

TEST(utf8_ascii_has_no_high_bit_anywhere) {
    uint8_t text[40];
    memset(text, 'a', sizeof text);
    for (size_t size = 0; size <= sizeof text; size++) {
        CHECK(kc_utf8_is_ascii(text, size));
        for (size_t i = 0; i < sizeof text; i++) {
            text[i] = 0x80;
            CHECK_EQ(kc_utf8_is_ascii(text, size), i >= size);
            text[i] = 'a';
        }
    }
}

TEST(utf8_of_nothing) {
    uint8_t out[3];
    CHECK(kc_utf8_valid(NULL, 0));
    CHECK(kc_utf8_is_ascii(NULL, 0));
    CHECK_EQ(kc_utf8_repair(NULL, 0, out), 0);
}
