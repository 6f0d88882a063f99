#include <string.h>

#include "check.h"
#include "kc_utf8.h"

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
