# The one style of all figures: white ground, and colours that differ in lightness, so that neither a print in gray nor
# a colour-blind reader loses anything.
# A script sets `format` ("svg" or "png"), `target`, `wide` and `high` (pixels) before it loads this file.
set encoding utf8
if (format eq "svg") {
  set terminal svg size wide, high background "white" font "DejaVu Sans,13" noenhanced
} else {
  set terminal pngcairo size wide, high background "white" font "DejaVu Sans,10" noenhanced
}
set output target
set datafile separator ","
set border 3 linewidth 1 linecolor rgb "#444444"
set tics nomirror out scale 0.6 textcolor rgb "#222222"
set grid y linecolor rgb "#dddddd" linetype 1 linewidth 1
set key top right noopaque samplen 2.5 spacing 1.2
set style line 1 linecolor rgb "#10243f" linewidth 1.6                                  # simulated
set style line 2 linecolor rgb "#e6a04b" linewidth 3.2                                  # measured
set style line 3 linecolor rgb "#14365c" pointtype 7 pointsize 1.0                      # fitted: filled circle
set style line 4 linecolor rgb "#c2571a" pointtype 6 pointsize 1.3 linewidth 1.8        # predicted: open circle
set style line 5 linecolor rgb "#bcbcbc" linewidth 6                                    # bound
set style line 6 linecolor rgb "#b2182b" linewidth 1.8 dashtype 2                       # a limit
# Lines of a study: colour, lightness, dash and point shape all differ, so that any of them is enough.
do for [i=1:12] {
  set style line 10 + i linewidth 1.8 linecolor rgb (i % 3 == 1 ? "#14365c" : i % 3 == 2 ? "#c2571a" : "#4aa89f") \
    dashtype 0 + (i <= 3 ? 1 : i <= 6 ? 2 : i <= 9 ? 4 : 3) pointtype (word("7 6 5 4 9 8 11 10 13 12 3 2", i) + 0) pointsize 1.2
}
# Where the last plot's values stand, for the script of a page (pages/page.js). A figure of several frames collects those
# before its last in `frames`, with a semicolon after each.
frame(names, log_x, log_y) = sprintf("%.8g %.8g %.8g %.8g %d %.8g %.8g %.8g %.8g %d %d", GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, \
  GPVAL_X_MIN, GPVAL_X_MAX, log_x, GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE - GPVAL_TERM_YMIN, \
  GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE - GPVAL_TERM_YMAX, GPVAL_Y_MIN, GPVAL_Y_MAX, log_y, names)
# Areas: neighbours in a stack differ in lightness.
areas = "#1f3a5f #f2d9a0 #3f9c8c #cfe3c1 #8a4a2f #e8b04a #241a38 #dcebf5 #5a72b5 #c9d68a #5b2a5e #d98fb0"
do for [i=1:12] { set style line 30 + i linecolor rgb word(areas, i) linewidth 1 }
