# Scaling and its efficiency: gnuplot -c scaling.gp STYLE_FOLDER FORMAT TARGET DATA SETTINGS (see sweep.gp)
# DATA: x, the n lines, their efficiencies, their ideals.
format = ARG2; target = ARG3; wide = 1000; high = 680
eval ARG5
n = int(n)
load ARG1."/style.gp"
set grid x y linecolor rgb "#dddddd" linetype 1 linewidth 1
set multiplot
set lmargin at screen 0.10; set rmargin at screen 0.97
set logscale x 2; log_x = 1
if (strlen(tics) > 0) { eval "set xtics (".bare_tics.")" }
set offsets graph 0.03, graph 0.03, 0, 0
set title title_text
set tmargin at screen 0.89; set bmargin at screen 0.44
set logscale y 10
set format x ""
set ylabel y_text
set key tmargin right horizontal
plot for [i=1:n] ARG4 using 1:(column(1 + 2 * n + i) * scale) with lines linestyle 2 linewidth 2.5 dashtype 2 title (i == 1 ? "ideal" : ""), \
     for [i=1:n] ARG4 using 1:(column(i + 1) * scale) with linespoints linestyle 10 + i title (n > 1 ? columnheader(i + 1) : "simulated")
frames = frame(0, 1, 1).";"
unset title
set tmargin at screen 0.40; set bmargin at screen 0.11
unset logscale y
if (strlen(tics) > 0) { eval "set xtics (".tics.")" }
set format x "%g"
set xlabel x_text
set ylabel "efficiency (%)"
set yrange [0:110]
set ytics 0, 25, 100
unset key
plot ARG4 skip 1 using 1:(100) with lines linestyle 2 linewidth 2.5 dashtype 2 notitle, \
     for [i=1:n] ARG4 skip 1 using 1:(100 * column(1 + n + i)) with linespoints linestyle 10 + i notitle
unset multiplot
