# Fits lme4's answer to one case of the fixtures:
#   Rscript lme4_fixtures.R DATA.csv "y ~ tz + model + (1 + tz | concept)" "y ~ tz + (1 + tz | concept)"
# prints `kind <tab> name <tab> value` lines: restricted fit (reml:...), likelihood fit (ml:...), and, where a third
# argument gives a smaller model, the likelihood-ratio test against it. lmerTest gives Satterthwaite's degrees of freedom.
suppressPackageStartupMessages({library(lme4); library(lmerTest)})
arguments <- commandArgs(trailingOnly = TRUE)
data <- read.csv(arguments[1], colClasses = c(concept = "character", model = "character"))
# tighter than the default, so that differences are ours
control <- lmerControl(optimizer = "bobyqa", calc.derivs = TRUE,
                       optCtrl = list(maxfun = 200000, rhobeg = 0.2, rhoend = 1e-9))
say <- function(kind, name, value) cat(sprintf("%s\t%s\t%.12g\n", kind, name, value))
fit <- function(formula, reml) {
  suppressWarnings(suppressMessages(lmerTest::lmer(as.formula(formula), data, REML = reml, control = control)))
}
for (reml in c(TRUE, FALSE)) {
  prefix <- if (reml) "reml" else "ml"
  model <- fit(arguments[2], reml)
  table <- coef(summary(model))
  for (term in rownames(table)) {
    say(paste0(prefix, ":estimate"), term, table[term, "Estimate"])
    say(paste0(prefix, ":std_error"), term, table[term, "Std. Error"])
    say(paste0(prefix, ":statistic"), term, table[term, "t value"])
    say(paste0(prefix, ":df"), term, table[term, "df"])
  }
  variance <- as.data.frame(VarCorr(model))
  for (i in seq_len(nrow(variance))) {
    name <- if (variance$grp[i] == "Residual") "residual" else
      paste(na.omit(c(variance$var1[i], variance$var2[i])), collapse = " & ")
    say(paste0(prefix, ":covariance"), name, variance$vcov[i])
  }
  say(prefix, "log_likelihood", as.numeric(logLik(model)))
  say(prefix, "aic", AIC(model))
  say(prefix, "bic", BIC(model))
  say(prefix, "singular", as.numeric(isSingular(model)))
  say(prefix, "n", nobs(model))
}
if (length(arguments) > 2) {
  test <- anova(fit(arguments[3], FALSE), fit(arguments[2], FALSE))
  say("test", "chi2", test$Chisq[2])
  say("test", "df", test$Df[2])
  say("test", "p_value", test[["Pr(>Chisq)"]][2])
}
say("version", as.character(packageVersion("lme4")), 0)
say("version", paste0("R ", getRversion()), 0)
say("version", paste0("lmerTest ", packageVersion("lmerTest")), 0)
