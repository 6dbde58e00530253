# A group of outputs stacked, a bar a point: gnuplot -c breakdown.gp STYLE_FOLDER FORMAT TARGET DATA SETTINGS
# DATA: name, the n parts.
format = ARG2; target = ARG3; wide = 1000; high = 560
eval ARG5
n = int(n)
load ARG1."/style.gp"
categories = 1
set title title_text
set xlabel x_text
set ylabel y_text
set key outside right center reverse Left invert samplen 1.5
set style data histograms
set style histogram rowstacked
set boxwidth bars > 3 ? 0.7 : 0.4
set xrange [-0.6:bars - 0.4]
set yrange [0:*]
set offsets 0, 0, graph 0.08, 0
set xtics scale 0
if (rotated) { set xtics rotate by 40 right }
total(k) = sum [j=2:n + 1] column(j)
plot for [i=1:n] ARG4 using (column(i + 1) * scale):xtic(1) linestyle 30 + i fillstyle solid 1 border linecolor rgb "#000000" title columnheader(i + 1), \
     ARG4 skip 1 using 0:(total(0) * scale):(sprintf("%.4g", total(0) * scale)) with labels offset 0, 0.6 notitle
