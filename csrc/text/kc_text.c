#include "text/kc_text.h"

enum { MOST_DIGITS = 20, TIME_SIZE = 23 };

static const char PAIRS[] =
    "000102030405060708091011121314151617181920212223242526272829303132333435363738394041424344454647484950515253545556"
    "57"
    "5859606162636465666768697071727374757677787980818283848586878889909192939495969798"
    "99";

/* Writes the digits before `end`; returns the first of them. */
static uint8_t *digits_before(uint8_t *end, uint64_t value) {
    while (value >= 100) {
        end -= 2;
        memcpy(end, PAIRS + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        end -= 2;
        memcpy(end, PAIRS + value * 2, 2);
    } else {
        *--end = (uint8_t)('0' + value);
    }
    return end;
}

int kc_text_number(kc_text *t, int64_t value, kc_error *error) {
    uint8_t text[MOST_DIGITS], *const end = text + sizeof text;
    uint8_t *start = digits_before(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    if (value < 0) *--start = '-';
    return kc_text_add(t, start, (size_t)(end - start), error);
}

/* Two digits and the character after them. */
static uint8_t *put_pair(uint8_t *p, int64_t value, char after) {
    memcpy(p, PAIRS + value * 2, 2);
    p[2] = (uint8_t)after;
    return p + 3;
}

enum { DAY_MS = 86400000 };

/* The calendar in eras of 400 years that begin with March, so that a leap day is the last one of a year: see Howard
 * Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
static uint8_t *put_date(uint8_t *p, int64_t days) {
    const int64_t shifted = days + 719468, era = shifted / 146097, of_era = shifted % 146097;
    const int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t month_from_march = (5 * of_year + 2) / 153;
    const int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    const int64_t year = year_of_era + era * 400 + (month <= 2);
    memcpy(p, PAIRS + year / 100 * 2, 2);
    p = put_pair(p + 2, year % 100, '-');
    p = put_pair(p, month, '-');
    return put_pair(p, of_year - (153 * month_from_march + 2) / 5 + 1, ' ');
}

int kc_text_time(kc_text *t, int64_t milliseconds, kc_error *error) {
    static const int64_t END = INT64_C(253402300800000); /* the year 10000 */
    if (milliseconds == -1) return kc_text_add(t, "-", 1, error);
    if (milliseconds < 0 || milliseconds >= END) return kc_text_number(t, milliseconds, error);
    uint8_t text[TIME_SIZE + 1];
    const int64_t of_day = milliseconds % DAY_MS;
    uint8_t *p = put_date(text, milliseconds / DAY_MS);
    p = put_pair(p, of_day / 3600000, ':');
    p = put_pair(p, of_day / 60000 % 60, ':');
    p = put_pair(p, of_day / 1000 % 60, '.');
    *p++ = (uint8_t)('0' + milliseconds % 1000 / 100);
    memcpy(p, PAIRS + milliseconds % 100 * 2, 2);
    return kc_text_add(t, text, TIME_SIZE, error);
}

int kc_text_hex(kc_text *t, const uint8_t *data, size_t size, kc_error *error) {
    static const char HEX[] = "0123456789abcdef";
    const int code = kc_buffer_reserve(&t->out, 2 * size, error);
    if (code) return code;
    uint8_t *p = t->out.data + t->out.size;
    for (size_t i = 0; i < size; i++) {
        *p++ = (uint8_t)HEX[data[i] >> 4];
        *p++ = (uint8_t)HEX[data[i] & 15];
    }
    t->out.size += 2 * size;
    return KC_OK;
}

int kc_text_base64(kc_text *t, const uint8_t *data, size_t size, kc_error *error) {
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t needed = size / 3 * 4 + (size % 3 ? 4 : 0);
    const int code = kc_buffer_reserve(&t->out, needed, error);
    if (code) return code;
    uint8_t *p = t->out.data + t->out.size;
    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const uint32_t bits = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                              (left > 2 ? (uint32_t)data[i + 2] : 0);
        *p++ = (uint8_t)LETTERS[bits >> 18];
        *p++ = (uint8_t)LETTERS[bits >> 12 & 63];
        *p++ = (uint8_t)(left > 1 ? LETTERS[bits >> 6 & 63] : '=');
        *p++ = (uint8_t)(left > 2 ? LETTERS[bits & 63] : '=');
    }
    t->out.size += needed;
    return KC_OK;
}
