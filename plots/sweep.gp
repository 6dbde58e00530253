# A study's output over one of its inputs, a line a series: gnuplot -c sweep.gp STYLE_FOLDER FORMAT TARGET DATA SETTINGS
# SETTINGS assigns title_text, x_text, y_text, scale (to the unit shown), n (lines), tics, log_x.
format = ARG2; target = ARG3; wide = 1000; high = 520
eval ARG5
load ARG1."/style.gp"
set title title_text
set xlabel x_text
set ylabel y_text
set grid x y linecolor rgb "#dddddd" linetype 1 linewidth 1
set key tmargin right horizontal
if (log_x) { set logscale x 2; set offsets graph 0.03, graph 0.03, graph 0.08, graph 0.05
} else { set offsets graph 0.03, graph 0.03, graph 0.08, graph 0.05 }
if (strlen(tics) > 0) { eval "set xtics (".tics.")" }
if (n < 2) { unset key }
plot for [i=1:int(n)] ARG4 using 1:(column(i + 1) * scale) with linespoints linestyle 10 + i title columnheader(i + 1)
