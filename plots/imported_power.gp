# Node power of an imported run with its events: gnuplot -c imported_power.gp STYLE_FOLDER FORMAT TARGET DATA TITLE
# SIMULATED EVALUATIONS RUN_S SIDE ("" = none)
format = ARG2; target = ARG3; wide = 1000; high = 460
load ARG1."/style.gp"
run_s = ARG8 + 0
set title ARG5
set xlabel "time since run_start (s)"
set ylabel (strlen(ARG9) > 0 ? ARG9." power of a node (kW)" : "power of a node (kW)")
stats ARG4 skip 1 using ($2/1000) name "WATTS" nooutput
set yrange [0:WATTS_max * 1.15]
set xrange [-0.04 * run_s - 5:run_s * 1.04 + 5]
set key tmargin right horizontal
set arrow from 0, graph 0 to 0, graph 1 nohead linecolor rgb "#666666" dashtype 2
set arrow from run_s, graph 0 to run_s, graph 1 nohead linecolor rgb "#666666" dashtype 2
set label "run_start" at 0, graph 0.03 left offset 0.4,0 front textcolor rgb "#444444"
set label "run_stop" at run_s, graph 0.03 right offset -0.4,0 front textcolor rgb "#444444"
set style fill solid 1 noborder
top = WATTS_max * 1.15
curves = ""
if (strlen(ARG7) > 0) {  # bars from the ground to the top
  curves = "ARG7 skip 1 using (($1+$2)/2):(top/2):(($2-$1)/2):(top/2) with boxxyerror linecolor rgb '#e6e3d3' title 'evaluation', "
}
curves = curves."ARG4 skip 1 using 1:($2/1000) with lines linestyle 2 title 'measured, mean of nodes'"
if (strlen(ARG6) > 0) {
  curves = curves.", ARG6 skip 1 using 1:($2/1000) with lines linestyle 1 title 'simulated, as the meter reads it'"
}
plot @curves
