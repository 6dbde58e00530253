# Node power over time: gnuplot -c power.gp STYLE_FOLDER FORMAT TARGET DATA TITLE MEASURED ("" = none)
format = ARG2; target = ARG3; wide = 1000; high = 460
load ARG1."/style.gp"
set title ARG5.": DC power of a node over the run"
set xlabel "time since run_start (s)"
set ylabel "DC power of a node (kW)"
set yrange [0:*]
set grid x linecolor rgb "#eeeeee" linetype 1 linewidth 1
set key tmargin right horizontal
stats ARG4 skip 1 using 1 nooutput
set xrange [STATS_min:STATS_max + 0.05 * (STATS_max - STATS_min)]  # a measured run may end later
stats ARG4 skip 1 using ($4-$3) name "BAND" nooutput
set style fill solid 1 noborder
# What is there to draw: nodes that differ have a band and a median of their own.
curves = ""
if (BAND_max > 1) {
  curves = curves."ARG4 skip 1 using 1:($3/1000):($4/1000) with filledcurves linecolor rgb '#cfdeee' title 'simulated, p5 to p95 of nodes', "
}
if (strlen(ARG6) > 0) {
  curves = curves."ARG6 skip 1 using 1:($2/1000) with lines linestyle 2 title 'measured, mean of nodes', "
}
if (BAND_max > 1) {
  curves = curves."ARG4 skip 1 using 1:($5/1000) with lines linestyle 1 dashtype 3 title 'p50', "
}
plot @curves ARG4 skip 1 using 1:($2/1000) with lines linestyle 1 title "simulated mean, as the meter reads it"
