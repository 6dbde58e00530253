# The one style of all figures: white ground, black and grays, so that a print without colours loses nothing.
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
set key top right opaque samplen 2.5 spacing 1.2
set style line 1 linecolor rgb "#000000" linewidth 1.6                                  # simulated
set style line 2 linecolor rgb "#a8a8a8" linewidth 3.2                                  # measured
set style line 3 linecolor rgb "#000000" pointtype 7 pointsize 1.0                      # fitted: filled circle
set style line 4 linecolor rgb "#000000" pointtype 6 pointsize 1.3 linewidth 1.8        # predicted: open circle
set style line 5 linecolor rgb "#bcbcbc" linewidth 6                                    # bound
# Lines of a study: gray, dash and point shape all differ, so that any of them is enough.
do for [i=1:12] {
  set style line 10 + i linewidth 1.8 linecolor rgb (i % 3 == 1 ? "#000000" : i % 3 == 2 ? "#6e6e6e" : "#a0a0a0") \
    dashtype 0 + (i <= 3 ? 1 : i <= 6 ? 2 : i <= 9 ? 4 : 3) pointtype (word("7 6 5 4 9 8 11 10 13 12 3 2", i) + 0) pointsize 1.2
}
# Areas: neighbours in a stack differ in lightness.
areas = "#303030 #d9d9d9 #8c8c8c #f5f5f5 #5c5c5c #bdbdbd #1a1a1a #e8e8e8 #757575 #cfcfcf #474747 #a6a6a6"
do for [i=1:12] { set style line 30 + i linecolor rgb word(areas, i) linewidth 1 }
