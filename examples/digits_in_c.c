/* Prints which digits are in a file of images, 64 float32 numbers each: see digits_in_c.py. */
#include <stdio.h>

#include "classify.h"

#define MOST 64

int main(int count, char **words) {
    static float images[MOST][8][8];
    int32_t digits[MOST];
    float sure[MOST];
    FILE *file = count == 2 ? fopen(words[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: %s IMAGES\n", words[0]);
        return 2;
    }
    for (;;) {
        size_t n = fread(images, sizeof images[0], MOST, file);
        if (n == 0) break;
        int32_t code = classify((int64_t)n, images[0][0], digits, sure);
        if (code != 0) {
            fprintf(stderr, "%s\n", classify_error(code));
            return 1;
        }
        for (size_t i = 0; i < n; i++) printf("%d\n", (int)digits[i]);
    }
    fclose(file);
    return 0;
}
